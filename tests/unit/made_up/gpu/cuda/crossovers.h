/* A table for the test of `auto`, in the place of the measured one: what it says is nobody's measurement. */
#ifndef MM_GPU_CUDA_CROSSOVERS_H
#define MM_GPU_CUDA_CROSSOVERS_H

enum { MM_CUDA_SIMT_EDGE = 150 };

static const struct {
    unsigned narrow;
    unsigned depth;
    unsigned wide;
} mm_cuda_crossovers[] = {
    {64, 64, 0},
    {64, 1024, 8192},
    {512, 64, 4096},
    {512, 1024, 1024},
};

#endif
