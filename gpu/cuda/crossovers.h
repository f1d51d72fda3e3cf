/* Lengths at which one kernel becomes faster than another, measured on one NVIDIA H200. `./dev bench
 * crossovers` generates this file, so do not edit it. */
#pragma once

/* clang-format off */

/* simt is at least 5% faster than the tiled kernels for products of n×n matrices if n has at least this value. */
enum { MM_CUDA_SIMT_EDGE = 64 };

/* fp32_tensor is faster than simt if the longer side of C is at least as long as the entry. 0 means that simt is always
 * faster. Each row is for shorter sides of C up to a value in mm_cuda_narrow_edges. Each column is for values of k up to
 * a value in mm_cuda_depth_edges. The last row and the last column are for all larger values. */
static const unsigned mm_cuda_narrow_edges[] = {32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1536};
static const unsigned mm_cuda_depth_edges[] = {47, 96, 160, 224, 320, 448, 640, 896, 1536, 3072};
static const unsigned mm_cuda_crossovers[][11] = {
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, /* shorter side up to 32 */
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, /* shorter side up to 64 */
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8193}, /* shorter side up to 128 */
    {0, 0, 0, 0, 0, 0, 0, 4097, 4097, 2049, 1025}, /* shorter side up to 192 */
    {0, 0, 0, 0, 8193, 6145, 6145, 3073, 3073, 1537, 1025}, /* shorter side up to 256 */
    {0, 0, 0, 8193, 8193, 4097, 4097, 2049, 2049, 1025, 641}, /* shorter side up to 384 */
    {0, 0, 8193, 8193, 4097, 3073, 2049, 1537, 1025, 769, 513}, /* shorter side up to 512 */
    {0, 0, 8193, 6145, 3073, 2049, 2049, 1537, 1025, 513, 513}, /* shorter side up to 640 */
    {0, 0, 8193, 4097, 2049, 2049, 1025, 1025, 1025, 641, 641}, /* shorter side up to 768 */
    {0, 0, 6145, 4097, 2049, 1537, 1025, 1025, 897, 769, 769}, /* shorter side up to 896 */
    {0, 0, 6145, 4097, 2049, 1537, 1025, 1025, 897, 897, 897}, /* shorter side up to 1024 */
    {0, 8193, 4097, 2049, 1025, 1025, 1025, 1025, 1025, 1025, 1025}, /* shorter side up to 1536 */
    {0, 8193, 3073, 2049, 1537, 1537, 1537, 1537, 1537, 1537, 1537}, /* shorter side above 1536 */
};
