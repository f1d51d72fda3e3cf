/* Models of the kernels for lessons. A model computes the memory accesses of one run from the addresses that
 * the warps use. Models need no GPU, so a build without CUDA has the models too. */
#pragma once

#include "gpu/lab/traffic/traffic.h"
#include "gpu/plan/variant.h"

__BEGIN_DECLS

/* Defines the model mm_traffic_NAME by an expression that uses the parameters. */
#define MM_TRAFFIC_MODEL(NAME, ...)                                                                          \
    bool mm_traffic_##NAME(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic) {    \
        return __VA_ARGS__;                                                                                  \
    }

/* Models of products. Models of tiled kernels support any tile, and other models ignore `tile`. */
mm_variant_traffic mm_traffic_naive, mm_traffic_naive_uncoalesced, mm_traffic_staged_copy;
mm_variant_traffic mm_traffic_tiled, mm_traffic_tiled_dynamic, mm_traffic_tiled_racy;
mm_variant_traffic mm_traffic_tiled_padded, mm_traffic_tiled_conflicted;
mm_variant_traffic mm_traffic_register_tiled, mm_traffic_vectorized, mm_traffic_warp_tiled;

mm_variant_traffic mm_traffic_transpose_naive, mm_traffic_transpose_shared, mm_traffic_transpose_padded;

/* Returns false for elements of 1 and 2 bytes if m or n is not a multiple of 64, because the kernel then
 * mixes several ways of loading. */
mm_variant_traffic mm_traffic_transpose_vectorized;

__END_DECLS
