/* The judgement of a reply by its request. */
#ifndef MM_LOAD_CHECK_H
#define MM_LOAD_CHECK_H

#include "tests/load/request.h"

enum mm_load_outcome {
    MM_LOAD_RIGHT,
    MM_LOAD_PUT_OFF, /* busy, stopping or not ready, and well said: neither right nor wrong */
    MM_LOAD_WRONG
};

struct mm_load_verdict {
    enum mm_load_outcome outcome;
    size_t code;                         /* in mm_load_codes, where the outcome is not wrong */
    char problem[MM_LOAD_PROBLEM_BYTES]; /* of a wrong one */
};

void mm_load_check(const struct mm_load_request *request, const struct mm_load_reply *reply,
                   const struct mm_load_catalogue *catalogue, struct mm_load_verdict *verdict);

#endif
