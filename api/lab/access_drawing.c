/* Draws accesses in shared memory for a terminal. */
#include "api/lab/access.h"

enum { LANES_PER_LINE = 16 }; /* half a warp: one transaction for wide words */

static void write_cell(FILE *out, bool is_active, const char *mark, unsigned number) {
    char cell[16] = "-";
    if (is_active)
        snprintf(cell, sizeof cell, "%s%u", mark, number);
    fprintf(out, "%5s", cell);
}

void mm_access_draw(FILE *out, const struct mm_probe *probe, size_t index) {
    const struct mm_access *access = &probe->accesses[index];
    const unsigned bank_bytes = mm_probe_bank_bytes(probe);
    char stride[16] = "";
    uint32_t offsets[MM_WARP_LANES];
    mm_access_offsets(access, offsets);
    const struct mm_bank_cost cost = mm_banks_predict(offsets, access->word_bytes, bank_bytes);
    if (access->pattern == MM_PATTERN_STRIDE)
        snprintf(stride, sizeof stride, " %u", access->stride);
    fprintf(out, "\n%s%s%s: %s of %u bytes, banks of %u bytes: degree %u, %u pass%s\n",
            mm_pattern_name(access->pattern), stride, access->padded ? ", padded" : "",
            probe->writes ? "writes" : "reads", access->word_bytes, bank_bytes, cost.degree, cost.passes,
            cost.passes == 1 ? "" : "es");
    for (unsigned first = 0; first < MM_WARP_LANES; first += LANES_PER_LINE) {
        const unsigned end = first + LANES_PER_LINE;
        fputs("lane", out);
        for (unsigned lane = first; lane < end; lane++)
            fprintf(out, "%5u", lane);
        fputs("\nbyte", out);
        for (unsigned lane = first; lane < end; lane++)
            write_cell(out, offsets[lane] != MM_LANE_INACTIVE, "", offsets[lane]);
        fputs("\nbank", out);
        for (unsigned lane = first; lane < end; lane++)
            write_cell(out, offsets[lane] != MM_LANE_INACTIVE, (cost.conflicts >> lane & 1) != 0 ? "*" : "",
                       mm_bank_of(offsets[lane], bank_bytes));
        fputc('\n', out);
    }
    if (cost.conflicts != 0)
        fputs("* conflict: the bank serves another word as well, one after the other\n", out);
}
