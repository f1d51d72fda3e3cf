/* A fictitious table of crossovers for the test of `auto`, used in place of the measured one. */
#pragma once

enum { MM_CUDA_SIMT_EDGE = 150 };

static const unsigned mm_cuda_narrow_edges[] = {64, 512};
static const unsigned mm_cuda_depth_edges[] = {640};
static const unsigned mm_cuda_crossovers[][2] = {{0, 4097}, {2049, 513}, {3000, 1}};
