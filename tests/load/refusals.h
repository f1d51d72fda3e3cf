/* The requests that must be refused, as a table: one row each. */
#ifndef MM_LOAD_REFUSALS_H
#define MM_LOAD_REFUSALS_H

#include <stddef.h>

struct mm_load_refusal {
    const char *name; /* what is wrong with it */
    const char *method;
    const char *target;
    const char *content_type; /* NULL: none */
    const char *accept;       /* NULL: none */
    const char *body;
    const char *code; /* that the reply must give */
};

struct mm_load_refusals {
    const struct mm_load_refusal *rows;
    size_t count;
};

extern const struct mm_load_refusals mm_load_refusals;

/* Those that a device which fails as told (tests/http/faulty) makes fail, as 5xx. */
extern const struct mm_load_refusals mm_load_faults;

/* The contract's codes with their HTTP statuses; the first is "ok", 200, which no problem has. */
enum { MM_LOAD_CODE_COUNT = 20 };

struct mm_load_code {
    const char *name;
    unsigned status;
};

extern const struct mm_load_code mm_load_codes[MM_LOAD_CODE_COUNT];

/* Where in the table; MM_LOAD_CODE_COUNT where there is no such code. */
size_t mm_load_code_find(const char *name);

#endif
