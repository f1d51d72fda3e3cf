/* Accesses in shared memory as a picture (SVG): the lanes above, the banks below, a line from each lane to
 * each bank that it uses. Lines in conflict have a second colour, and are dashed for readers who do not see
 * colours. No text in it comes from outside. */
#include "api/lab/access.h"

#include "api/text.h"

#include <assert.h>

/* Sizes in units of the picture. */
enum {
    MARGIN = 48, /* on the left, with the names of both lines of cells */
    CELL_WIDTH = 24,
    CELL_HEIGHT = 18,
    ROW_HEIGHT = 160,
    CAPTION_Y = 24, /* within a row, as the next two */
    LANES_Y = 36,
    BANKS_Y = 118,
    WIDTH = MARGIN + MM_WARP_LANES * CELL_WIDTH + 8
};

static const char style[] =
    "<style>\n"
    "text{font:13px system-ui,sans-serif;fill:#1b1b1b}\n"
    ".number{font-size:10px;text-anchor:middle}\n"
    ".page{fill:#fff}\n"
    ".cell{fill:none;stroke:#666}\n"
    ".idle{fill:none;stroke:#aaa;stroke-dasharray:2 2}\n"
    ".line{stroke:#1f5fa8;stroke-width:1.5}\n"
    ".conflict{stroke:#c2370c;stroke-width:1.5;stroke-dasharray:5 3}\n"
    "@media "
    "(prefers-color-scheme:dark){text{fill:#eee}.page{fill:#16181c}.cell{stroke:#999}.idle{stroke:#555}"
    ".line{stroke:#7db4f0}.conflict{stroke:#ff9a6b}}\n"
    "</style>\n";

static unsigned centre_of(unsigned cell) {
    return MARGIN + cell * CELL_WIDTH + CELL_WIDTH / 2;
}

/* A line of 32 cells. Bit i of `idle`: cell i takes no part. */
static void write_cells(FILE *out, const char *name, size_t y, uint32_t idle) {
    fprintf(out, "<text x=\"4\" y=\"%zu\">%s</text>\n", y + 13, name);
    for (unsigned cell = 0; cell < MM_WARP_LANES; cell++)
        fprintf(out,
                "<rect class=\"%s\" x=\"%u\" y=\"%zu\" width=\"%d\" height=\"%d\"/>"
                "<text class=\"number\" x=\"%u\" y=\"%zu\">%u</text>\n",
                (idle >> cell & 1) != 0 ? "idle" : "cell", MARGIN + cell * CELL_WIDTH + 1, y, CELL_WIDTH - 2,
                CELL_HEIGHT, centre_of(cell), y + 13, cell);
}

static void write_access(FILE *out, const struct mm_probe *probe, size_t index) {
    const struct mm_access *access = &probe->accesses[index];
    const unsigned bank_bytes = mm_probe_bank_bytes(probe);
    const size_t top = index * ROW_HEIGHT;
    char caption[MM_ACCESS_CAPTION_BYTES];
    uint32_t offsets[MM_WARP_LANES];
    uint32_t idle = 0;
    mm_access_offsets(access, offsets);
    const struct mm_bank_cost cost = mm_banks_predict(offsets, access->word_bytes, bank_bytes);
    mm_access_caption(probe, index, caption);
    fprintf(out, "<g>\n<text x=\"4\" y=\"%zu\">%s</text>\n", top + CAPTION_Y, caption);
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        if (offsets[lane] == MM_LANE_INACTIVE) {
            idle |= UINT32_C(1) << lane;
            continue;
        }
        for (unsigned byte = 0; byte < access->word_bytes; byte += bank_bytes)
            fprintf(out, "<line class=\"%s\" x1=\"%u\" y1=\"%zu\" x2=\"%u\" y2=\"%zu\"/>\n",
                    (cost.conflicts >> lane & 1) != 0 ? "conflict" : "line", centre_of(lane),
                    top + LANES_Y + CELL_HEIGHT, centre_of(mm_bank_of(offsets[lane] + byte, bank_bytes)),
                    top + BANKS_Y);
    }
    write_cells(out, "lanes", top + LANES_Y, idle);
    write_cells(out, "banks", top + BANKS_Y, 0);
    fputs("</g>\n", out);
}

/* The title and the description are what a screen reader says. */
static void write_head(FILE *out, const struct mm_probe *probe, size_t count) {
    const size_t height = count * ROW_HEIGHT;
    char caption[MM_ACCESS_CAPTION_BYTES];
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"title desc\" "
            "width=\"%d\" height=\"%zu\" viewBox=\"0 0 %d %zu\">\n"
            "<title id=\"title\">The banks of shared memory that a warp accesses</title>\n<desc id=\"desc\">"
            "Lanes above, banks below. A dashed line in a second colour is a conflict: its bank serves "
            "several words, one after another.",
            WIDTH, height, WIDTH, height);
    for (size_t index = 0; index < count; index++) {
        mm_access_caption(probe, index, caption);
        fprintf(out, " %s.", caption);
    }
    fprintf(out, "</desc>\n%s<rect class=\"page\" width=\"%d\" height=\"%zu\"/>\n", style, WIDTH, height);
}

char *mm_access_picture(const struct mm_probe *probe, size_t *length) {
    const size_t count = mm_access_shared_count(probe);
    struct mm_text text;
    FILE *out = mm_text_open(&text);
    assert(count <= MM_ACCESS_PICTURE_MAX);
    if (out == NULL)
        return NULL;
    write_head(out, probe, count);
    for (size_t index = 0; index < count; index++)
        write_access(out, probe, index);
    fputs("</svg>\n", out);
    return mm_text_close(out, &text, length);
}
