/* Where one kernel becomes faster than another, measured on one NVIDIA H200. Written by
 * `./dev bench crossovers`: not to be changed by hand. auto.c has the meaning. */
#ifndef MM_GPU_CUDA_CROSSOVERS_H
#define MM_GPU_CUDA_CROSSOVERS_H

/* simt is faster than the tiles from a cube of this edge on. */
enum { MM_CUDA_SIMT_EDGE = 64 };

/* C of `narrow` by `wide` and more, k of `depth` and more: there fp32_tensor is faster than simt; 0: never. */
static const struct {
    unsigned narrow;
    unsigned depth;
    unsigned wide;
} mm_cuda_crossovers[] = {
    {32, 64, 0},
    {32, 128, 0},
    {32, 256, 0},
    {32, 512, 0},
    {32, 1024, 0},
    {32, 2048, 0},
    {32, 4096, 0},
    {64, 64, 0},
    {64, 128, 0},
    {64, 256, 0},
    {64, 512, 0},
    {64, 1024, 0},
    {64, 2048, 0},
    {64, 4096, 0},
    {128, 64, 0},
    {128, 128, 0},
    {128, 256, 0},
    {128, 512, 0},
    {128, 1024, 0},
    {128, 2048, 0},
    {128, 4096, 16384},
    {256, 64, 0},
    {256, 128, 0},
    {256, 256, 16384},
    {256, 512, 8192},
    {256, 1024, 4096},
    {256, 2048, 2048},
    {256, 4096, 2048},
    {512, 64, 0},
    {512, 128, 16384},
    {512, 256, 8192},
    {512, 512, 4096},
    {512, 1024, 2048},
    {512, 2048, 1024},
    {512, 4096, 1024},
    {1024, 64, 0},
    {1024, 128, 8192},
    {1024, 256, 4096},
    {1024, 512, 2048},
    {1024, 1024, 1024},
    {1024, 2048, 1024},
    {1024, 4096, 1024},
    {2048, 64, 16384},
    {2048, 128, 4096},
    {2048, 256, 2048},
    {2048, 512, 2048},
    {2048, 1024, 2048},
    {2048, 2048, 2048},
    {2048, 4096, 2048},
};

#endif
