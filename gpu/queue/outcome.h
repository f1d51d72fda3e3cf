/* The outcome of a product: facts for replies, counts and logs. Plain data that owns nothing. */
#pragma once

#include "gpu/check/reduce.h"
#include "gpu/check/verification.h"
#include "gpu/clock.h"
#include "gpu/product/path.h"

struct mm_variant;

struct mm_outcome {
    const struct mm_variant *ran;    /* never `auto`; NULL: no device began the product */
    uint64_t span_ns[MM_SPAN_COUNT]; /* upload, kernel and download: the times of the whole launch, even if it
                                        was shared */
    unsigned batched;                /* products in the launch; 1: only this one */
    double flops_or_bytes; /* mm_job_flops_or_bytes of all products in the launch, once a device began */
    size_t uploaded_bytes; /* copied to the device's own memory, and back; 0 on the host */
    size_t downloaded_bytes;
    struct mm_path path;                 /* MM_PATH_NONE if the variant has one path only */
    struct mm_verification verification; /* is_done if a check was wanted and the product is complete */
    struct mm_reduction reduction;       /* the reduction of the wanted part, if one was wanted */
};

/* GFLOP/s of a product, or GB/s of a transposition, by kernel time. 0 if nothing ran. */
static inline double mm_outcome_rate(const struct mm_outcome *outcome) {
    const uint64_t kernel_ns = outcome->span_ns[MM_SPAN_KERNEL];
    return kernel_ns == 0 ? 0.0 : outcome->flops_or_bytes / (double)kernel_ns;
}
