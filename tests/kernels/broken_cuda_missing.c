/* No broken CUDA rows: a build without CUDA. */
#include "tests/kernels/broken.h"

const struct mm_variant mm_broken_cuda[1] = {{.name = "none"}};
const size_t mm_broken_cuda_count = 0;
const struct mm_variant mm_broken_cuda_transposes[1] = {{.name = "none"}};
const size_t mm_broken_cuda_transpose_count = 0;
