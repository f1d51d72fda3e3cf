/* Where one kernel becomes faster than another, measured on one NVIDIA H200. `./dev bench crossovers` writes
 * this file; do not change it by hand. auto.c uses it. */
#pragma once

/* clang-format off */

/* simt is faster than tiles, by at least a twentieth, from a cube of this edge on. */
enum { MM_CUDA_SIMT_EDGE = 64 };

/* fp32_tensor is faster than simt if the longer edge of C is at least as long as the entry; 0: never. The shorter
 * edge of C chooses the row: the first with an edge that is at least as long, else the last row. k chooses the
 * column by mm_cuda_depth_edges in this way. */
static const unsigned mm_cuda_narrow_edges[] = {32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1536};
static const unsigned mm_cuda_depth_edges[] = {47, 96, 160, 224, 320, 448, 640, 896, 1536, 3072};
static const unsigned mm_cuda_crossovers[][11] = {
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, /* up to 32 */
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, /* up to 64 */
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8193}, /* up to 128 */
    {0, 0, 0, 0, 0, 0, 0, 4097, 4097, 2049, 1025}, /* up to 192 */
    {0, 0, 0, 0, 8193, 6145, 6145, 3073, 3073, 1537, 1025}, /* up to 256 */
    {0, 0, 0, 8193, 8193, 4097, 4097, 2049, 2049, 1025, 641}, /* up to 384 */
    {0, 0, 8193, 8193, 4097, 3073, 2049, 1537, 1025, 769, 513}, /* up to 512 */
    {0, 0, 8193, 6145, 3073, 2049, 2049, 1537, 1025, 513, 513}, /* up to 640 */
    {0, 0, 8193, 4097, 2049, 2049, 1025, 1025, 1025, 641, 641}, /* up to 768 */
    {0, 0, 6145, 4097, 2049, 1537, 1025, 1025, 897, 769, 769}, /* up to 896 */
    {0, 0, 6145, 4097, 2049, 1537, 1025, 1025, 897, 897, 897}, /* up to 1024 */
    {0, 8193, 4097, 2049, 1025, 1025, 1025, 1025, 1025, 1025, 1025}, /* up to 1536 */
    {0, 8193, 3073, 2049, 1537, 1537, 1537, 1537, 1537, 1537, 1537}, /* beyond */
};
