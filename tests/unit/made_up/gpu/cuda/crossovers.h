/* A fictitious table that replaces the measured crossovers in the test of the variant `auto`. */
#pragma once

enum { MM_CUDA_SIMT_EDGE = 150 };

static const unsigned mm_cuda_narrow_edges[] = {64, 512};
static const unsigned mm_cuda_depth_edges[] = {640};
static const unsigned mm_cuda_crossovers[][2] = {{0, 4097}, {2049, 513}, {3000, 1}};
