/* Sizes of a block's consumers (block.cuh), for kernels and for the host. */
#pragma once

enum {
    MM_WARPGROUP = 128,   /* threads of a warpgroup */
    MM_CONSUMERS = 2,     /* consumers of a block; small tiles of `tensor` have one */
    MM_CONSUMER_ROWS = 64 /* rows of C that a consumer computes with one wgmma */
};
