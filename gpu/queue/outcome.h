/* What happened to a product, for responses, metrics and logs. The struct owns no memory. */
#pragma once

#include "gpu/check/reduce.h"
#include "gpu/check/verification.h"
#include "gpu/clock.h"
#include "gpu/product/path.h"

struct mm_variant;

struct mm_outcome {
    const struct mm_variant *ran;    /* never `auto`; NULL if no device began the product */
    uint64_t span_ns[MM_SPAN_COUNT]; /* times of the whole launch, which other products may share */
    unsigned batched;                /* number of products in the launch */
    unsigned devices;                /* number of devices that computed the product */
    size_t tiles;                    /* tiles of the product (gpu/plan/tiling.h); 0 if it was not cut */
    double flops_or_bytes;           /* sum of mm_job_flops_or_bytes over all products of the launch */
    size_t uploaded_bytes;           /* bytes copied to a GPU; 0 for a host device */
    size_t downloaded_bytes;
    size_t peer_bytes;                   /* copied from other GPUs before the first kernel */
    struct mm_path path;                 /* MM_PATH_NONE if the variant has only one path */
    struct mm_verification verification; /* is_done is true if the product was checked */
    struct mm_reduction reduction;       /* of the wanted part of C, if job->reduces */
};

/* Returns GFLOP/s of a product, or GB/s of a transposition, by kernel time. Returns 0 if nothing ran. */
static inline double mm_outcome_rate(const struct mm_outcome *outcome) {
    const uint64_t kernel_ns = outcome->span_ns[MM_SPAN_KERNEL];
    return kernel_ns == 0 ? 0.0 : outcome->flops_or_bytes / (double)kernel_ns;
}
