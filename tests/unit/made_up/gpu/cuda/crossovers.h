/* A table for the test of `auto`, in the place of the measured one: what it says is nobody's measurement. */
#ifndef MM_GPU_CUDA_CROSSOVERS_H
#define MM_GPU_CUDA_CROSSOVERS_H

enum { MM_CUDA_SIMT_EDGE = 150 };

enum { MM_CUDA_ANY = 0x7fffffff };

static const struct {
    unsigned narrow;
    unsigned depth;
    unsigned wide;
} mm_cuda_crossovers[] = {
    {64, 640, 0},
    {64, MM_CUDA_ANY, 4097},
    {512, 640, 2049},
    {512, MM_CUDA_ANY, 513},
    {MM_CUDA_ANY, 640, 3000},
    {MM_CUDA_ANY, MM_CUDA_ANY, 1},
};

#endif
