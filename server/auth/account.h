/* What the requests with API keys of one name have used. Written by __atomic additions without a lock. */
#pragma once

#include "gpu/status.h"

enum {
    MM_KEY_NAME_MAX = 15, /* shorter than any key, so no name in a log can be a key */
    MM_ACCOUNT_APART_BYTES = 64
};

struct mm_account {
    char name[MM_KEY_NAME_MAX + 1];
    uint64_t requests;
    uint64_t in_bytes;
    uint64_t out_bytes;
    uint64_t rejected[MM_STATUS_COUNT];
    uint64_t products;
    double kernel_s; /* of a launch that several products share, each has its part */
    double flops;
    char apart[MM_ACCOUNT_APART_BYTES]; /* keeps counts of two names in different cache lines */
};
