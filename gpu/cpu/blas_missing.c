/* blas in a build without OpenBLAS: the row stands in the table and says why it cannot run. */
#include "gpu/cpu/variants.h"

const char *mm_cpu_blas_missing(const struct mm_device *device) {
    (void)device;
    return "this build has no OpenBLAS";
}

void mm_cpu_blas_use(unsigned cores) {
    (void)cores;
}

enum mm_status mm_cpu_blas(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    (void)product;
    (void)lane;
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "%s", mm_cpu_blas_missing(NULL));
}
