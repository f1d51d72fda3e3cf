/* Accesses in shared memory drawn for a terminal, and their captions. */
#include "api/lab/access.h"

enum { LANES_PER_LINE = 16 }; /* so lines fit 80 columns; half a warp, one transaction of wide words */

void mm_access_caption(const struct mm_probe *probe, size_t index, char caption[MM_ACCESS_CAPTION_BYTES]) {
    const struct mm_access *access = &probe->accesses[index];
    const unsigned bank_bytes = mm_probe_bank_bytes(probe);
    char stride[16] = "";
    uint32_t offsets[MM_WARP_LANES];
    mm_access_offsets(access, offsets);
    const struct mm_bank_cost cost = mm_banks_predict(offsets, access->word_bytes, bank_bytes);
    if (access->pattern == MM_PATTERN_STRIDE)
        snprintf(stride, sizeof stride, " %u", access->stride);
    snprintf(caption, MM_ACCESS_CAPTION_BYTES,
             "%s%s%s: %s of %u bytes, banks of %u bytes: degree %u, %u pass%s",
             mm_pattern_name(access->pattern), stride, access->padded ? ", padded" : "",
             probe->writes ? "writes" : "reads", access->word_bytes, bank_bytes, cost.degree, cost.passes,
             cost.passes == 1 ? "" : "es");
}

void mm_access_draw(FILE *out, const struct mm_probe *probe, size_t index) {
    const struct mm_access *access = &probe->accesses[index];
    const unsigned bank_bytes = mm_probe_bank_bytes(probe);
    char caption[MM_ACCESS_CAPTION_BYTES];
    uint32_t offsets[MM_WARP_LANES];
    mm_access_offsets(access, offsets);
    const struct mm_bank_cost cost = mm_banks_predict(offsets, access->word_bytes, bank_bytes);
    mm_access_caption(probe, index, caption);
    fprintf(out, "\n%s\n", caption);
    for (unsigned first = 0; first < MM_WARP_LANES; first += LANES_PER_LINE) {
        fputs("lane", out);
        for (unsigned lane = first; lane < first + LANES_PER_LINE; lane++)
            fprintf(out, "%4u", lane);
        fputs("\nbank", out);
        for (unsigned lane = first; lane < first + LANES_PER_LINE; lane++) {
            char bank[16] = "-";
            if (offsets[lane] != MM_LANE_INACTIVE)
                snprintf(bank, sizeof bank, "%s%u", (cost.conflicts >> lane & 1) != 0 ? "*" : "",
                         mm_bank_of(offsets[lane], bank_bytes));
            fprintf(out, "%4s", bank);
        }
        fputc('\n', out);
    }
    if (cost.conflicts != 0)
        fputs("* conflict: the bank serves another word as well, one after the other\n", out);
}
