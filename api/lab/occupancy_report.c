/* Writes the rows of an `occupancy` request as JSON and as a table. */
#include "api/lab/occupancy.h"

#include "api/json/json_value.h"
#include "api/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct row {
    char capability[16]; /* "9.0" */
    struct mm_block_use use;
    struct mm_occupancy occupancy;
};

static size_t count_rows(const struct mm_occupancy_request *request) {
    size_t rows = 1;
    for (unsigned list = 0; list < MM_OCCUPANCY_LIST_COUNT; list++)
        rows *= request->counts[list];
    assert(rows > 0);
    return rows;
}

/* Computes a row. The values of the last list change fastest from row to row. */
static struct row row_at(const struct mm_occupancy_request *request, size_t index) {
    unsigned chosen[MM_OCCUPANCY_LIST_COUNT];
    struct row row;
    for (unsigned list = MM_OCCUPANCY_LIST_COUNT; list-- > 0; index /= request->counts[list])
        chosen[list] = request->values[list][index % request->counts[list]];
    const unsigned capability = chosen[MM_OCCUPANCY_CAPABILITY];
    row.use = (struct mm_block_use){.threads = chosen[MM_OCCUPANCY_THREADS],
                                    .registers_per_thread = chosen[MM_OCCUPANCY_REGISTERS],
                                    .shared_bytes = chosen[MM_OCCUPANCY_SHARED]};
    snprintf(row.capability, sizeof row.capability, "%u.%u", capability / 10, capability % 10);
    const bool is_known = mm_occupancy_predict(capability, &row.use, &row.occupancy);
    assert(is_known);
    (void)is_known;
    return row;
}

static double fraction_of(const struct mm_occupancy *occupancy) {
    return (double)occupancy->warps / occupancy->warps_max;
}

json_t *mm_occupancy_limiters(const struct mm_occupancy *occupancy) {
    json_t *list = json_array();
    int failed = 0;
    for (unsigned limiter = 0; limiter < MM_LIMITER_COUNT && failed == 0; limiter++)
        if (occupancy->blocks_by[limiter] == occupancy->blocks)
            failed |= json_array_append_new(list, json_string(mm_limiter_name((enum mm_limiter)limiter)));
    return mm_json_finish(list, failed);
}

static json_t *make_allowed(const struct mm_occupancy *occupancy) {
    json_t *object = json_object();
    int failed = 0;
    for (unsigned limiter = 0; limiter < MM_LIMITER_COUNT; limiter++) {
        const unsigned blocks = occupancy->blocks_by[limiter];
        failed |= mm_json_put(object, mm_limiter_name((enum mm_limiter)limiter),
                              blocks == MM_OCCUPANCY_UNLIMITED ? json_null() : mm_json_count(blocks));
    }
    return mm_json_finish(object, failed);
}

static json_t *make_row(const struct row *row) {
    const struct mm_occupancy *occupancy = &row->occupancy;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o}", "compute_capability",
                     row->capability, "threads_per_block", mm_json_count(row->use.threads),
                     "registers_per_thread", mm_json_count(row->use.registers_per_thread), "shared_bytes",
                     mm_json_count(row->use.shared_bytes), "blocks", mm_json_count(occupancy->blocks),
                     "warps", mm_json_count(occupancy->warps), "warps_max",
                     mm_json_count(occupancy->warps_max), "occupancy", fraction_of(occupancy), "limiters",
                     mm_occupancy_limiters(occupancy), "blocks_by", make_allowed(occupancy));
}

char *mm_occupancy_json(const struct mm_occupancy_request *request, size_t *length) {
    const size_t count = count_rows(request);
    json_t *rows = json_array();
    int failed = 0;
    for (size_t index = 0; index < count && failed == 0; index++) {
        const struct row row = row_at(request, index);
        failed |= json_array_append_new(rows, make_row(&row));
    }
    return mm_json_print(json_pack("{s:s, s:o}", "op", "occupancy", "rows", mm_json_finish(rows, failed)),
                         JSON_REAL_PRECISION(15), length);
}

static void write_row(FILE *out, const struct row *row) {
    const struct mm_occupancy *occupancy = &row->occupancy;
    const char *before = "  ";
    fprintf(out, "%-10s %7u %9u %7zu |", row->capability, row->use.threads, row->use.registers_per_thread,
            row->use.shared_bytes);
    for (unsigned limiter = 0; limiter < MM_LIMITER_COUNT; limiter++) {
        const int width = 1 + (int)strlen(mm_limiter_name((enum mm_limiter)limiter));
        if (occupancy->blocks_by[limiter] == MM_OCCUPANCY_UNLIMITED)
            fprintf(out, "%*s", width, "-");
        else
            fprintf(out, "%*u", width, occupancy->blocks_by[limiter]);
    }
    fprintf(out, " | %6u %5u %8.1f%%", occupancy->blocks, occupancy->warps, 100 * fraction_of(occupancy));
    for (unsigned limiter = 0; limiter < MM_LIMITER_COUNT; limiter++)
        if (occupancy->blocks_by[limiter] == occupancy->blocks) {
            fprintf(out, "%s%s", before, mm_limiter_name((enum mm_limiter)limiter));
            before = ", ";
        }
    fputc('\n', out);
}

char *mm_occupancy_table(const struct mm_occupancy_request *request, size_t *length) {
    const size_t count = count_rows(request);
    struct mm_text text;
    FILE *out = mm_text_open(&text);
    if (out == NULL)
        return NULL;
    fputs("compute    a block of                | blocks that each allows                | on a "
          "multiprocessor\n"
          "capability threads registers  shared |",
          out);
    for (unsigned limiter = 0; limiter < MM_LIMITER_COUNT; limiter++)
        fprintf(out, " %s", mm_limiter_name((enum mm_limiter)limiter));
    fputs(" | blocks warps occupancy  limited by\n", out);
    for (size_t index = 0; index < count; index++) {
        const struct row row = row_at(request, index);
        write_row(out, &row);
    }
    return mm_text_close(out, &text, length);
}
