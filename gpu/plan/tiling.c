/* Finds the order and the size of tiles, and forecasts their time. */
#include "gpu/plan/tiling.h"

#include "gpu/device/backend.h"

#include <assert.h>
#include <math.h>

/* Slots begin at multiples of this. */
enum { ALIGNMENT = 256 };

/* The fewest rows and columns of a tile, if the product has more, and the most tiles of a product. A request
 * of a hundred bytes can ask for a huge C. */
enum { EDGE_MIN = 128, TILES_MAX = 1 << 16, PLAYED_MAX = 2048 };

size_t mm_tiling_bytes(const struct mm_tiling *tiling) {
    return tiling->a_slots * tiling->a_bytes + tiling->b_slots * tiling->b_bytes +
           MM_TILING_C_SLOTS * tiling->c_bytes + tiling->workspace_bytes;
}

/* In a group, the first a_slots panels of A and the last a_slots panels are used panel of B by panel of B. So
 * a group can begin as soon as its first panel of B is on the device. And the next group can replace the
 * panels of B one by one. All other panels of A are used one after another.
 *
 * Panel a of A lies in slot a % a_slots. Because every second group goes backwards, a panel always replaces
 * the one that was used up first. */
struct mm_tiling_step mm_tiling_tile(const struct mm_tiling *tiling, size_t index) {
    const size_t down = tiling->a_panels;
    const size_t group = index / (tiling->b_slots * down), first = group * tiling->b_slots;
    const size_t within = index - first * down;
    const size_t across = mm_size_min(tiling->b_slots, tiling->b_panels - first);
    const size_t head = mm_size_min(tiling->a_slots, down);
    const size_t tail = mm_size_min(tiling->a_slots, down - head);
    size_t row = within / across, col = within % across;
    if (within < head * across) {
        row = within % head;
        col = within / head;
    } else if (within >= (down - tail) * across) {
        row = down - tail + (within - (down - tail) * across) % tail;
        col = (within - (down - tail) * across) / tail;
    }
    const size_t a = group % 2 == 0 ? row : down - 1 - row;
    return (struct mm_tiling_step){a, first + col, (unsigned)(a % tiling->a_slots), (unsigned)col};
}

struct mm_product mm_tiling_part(const struct mm_tiling *tiling, const struct mm_product *product,
                                 const struct mm_tiling_step *tile) {
    const size_t row = tile->a * tiling->rows, col = tile->b * tiling->cols;
    struct mm_product part =
        mm_product_part(product, MM_MATMUL, row, mm_size_min(tiling->rows, product->m - row), col,
                        mm_size_min(tiling->cols, product->n - col));
    part.whole = (struct mm_whole){0}; /* a tile is planned by its own size */
    return part;
}

/* --- the forecast -------------------------------------------------------------------------------- */

/* The time from one kernel to the next, in nanoseconds. */
static const double launch_ns = 20000.0;

/* Rates of a device for one product, in nanoseconds. */
struct rates {
    double element; /* for the kernel of an element of C */
    double byte;    /* for copying a byte */
    size_t edge;    /* a kernel takes as long as if the rows and columns of C were multiples of this */
};

/* The variants that do not name their blocks compute C in blocks of about this edge, by tensor cores. */
enum { TENSOR_EDGE = 256 };

static struct rates rates_of(const struct mm_plan *plan, const struct mm_product *product) {
    const double assumed_byte_ns = 0.02;
    const double byte_ns = mm_forecast_copy_ns(plan->device, 1);
    return (struct rates){.element = mm_forecast_kernel_ns(plan->device, plan->variant, product) /
                                     ((double)product->m * (double)product->n),
                          .byte = byte_ns > 0.0 ? byte_ns : assumed_byte_ns,
                          .edge = plan->layout.block_rows == 0 ? TENSOR_EDGE : plan->layout.block_rows};
}

/* Copying rows of a wider matrix takes as long for each row as this many bytes. Measured on an H200: rows of
 * 4 KiB are copied at 20 GB/s, rows of 8 KiB at 32 GB/s, and whole matrices at 54 GB/s. */
static const double row_bytes = 6144.0;

static double copy_ns(const struct mm_matrix *matrix, const struct rates *rates) {
    const double bytes = (double)matrix->cols * (double)mm_dtype_bytes(matrix->dtype);
    return (double)matrix->rows * (bytes + (matrix->cols < matrix->ld ? row_bytes : 0.0)) * rates->byte;
}

/* A slot during the forecast. */
struct slot {
    size_t panel; /* which panel it has: the index plus 1; 0 if the slot is empty */
    double copied_ns;
    double used_ns; /* end of the last use */
};

/* The three engines of a device work at the same time. Each member is when the engine's last work ends. */
struct engines {
    double upload_ns;
    double kernel_ns;
    double download_ns;
};

/* The product of a tile, and how its operands come to the device. */
struct source {
    struct mm_product part;
    unsigned uploads;
    const struct rates *rates;
};

/* Returns how long copying a panel of an operand to the slot takes, or 0 if the slot has the panel. */
static double upload(struct slot *slot, size_t panel, const struct source *source,
                     enum mm_operand_index index, struct engines *engines) {
    if (slot->panel == panel + 1)
        return 0.0;
    const bool is_copied = source->uploads >> index & 1;
    const double took_ns = is_copied ? copy_ns(mm_product_operand(&source->part, index), source->rates) : 0.0;
    engines->upload_ns = fmax(engines->upload_ns, slot->used_ns) + took_ns;
    slot->panel = panel + 1;
    slot->copied_ns = engines->upload_ns;
    return took_ns;
}

/* Plays the first PLAYED_MAX tiles through, and assumes that all others take as long. Ends early, with ns =
 * INFINITY, if they take longer than most_ns. */
static struct mm_tiling_times play(const struct mm_tiling *tiling, const struct mm_product *product,
                                   const struct rates *rates, double most_ns) {
    const double all_ns = (double)product->m * (double)product->n * rates->element;
    const size_t count = mm_size_min(mm_tiling_count(tiling), PLAYED_MAX);
    const double times = (double)mm_tiling_count(tiling) / (double)count;
    struct mm_tiling_times forecast = {.ns = INFINITY};
    struct engines engines = {0};
    struct slot a_slots[MM_TILING_SLOTS_MAX] = {0}, b_slots[MM_TILING_SLOTS_MAX] = {0};
    struct slot c_slots[MM_TILING_C_SLOTS] = {0};
    for (size_t index = 0; index < count; index++) {
        const struct mm_tiling_step tile = mm_tiling_tile(tiling, index);
        const struct source source = {mm_tiling_part(tiling, product, &tile), tiling->uploads, rates};
        const struct mm_product *part = &source.part;
        const double kernel_ns = (double)mm_size_round_up(part->m, rates->edge) *
                                 (double)mm_size_round_up(part->n, rates->edge) * rates->element;
        struct slot *a = &a_slots[tile.a_slot], *b = &b_slots[tile.b_slot];
        struct slot *c = &c_slots[index % MM_TILING_C_SLOTS];
        forecast.upload_ns += upload(a, tile.a, &source, MM_OPERAND_A, &engines);
        forecast.upload_ns += upload(b, tile.b, &source, MM_OPERAND_B, &engines);
        if (part->addend.rows > 0)
            forecast.upload_ns += upload(c, index, &source, MM_OPERAND_ADDEND, &engines);
        const double ready_ns = fmax(fmax(a->copied_ns, b->copied_ns), fmax(c->copied_ns, c->used_ns));
        if (index == 0)
            forecast.first_ns = ready_ns;
        engines.kernel_ns = fmax(engines.kernel_ns, ready_ns) + launch_ns + kernel_ns;
        engines.download_ns = fmax(engines.download_ns, engines.kernel_ns) +
                              (tiling->downloads ? copy_ns(&part->c, rates) : 0.0);
        a->used_ns = b->used_ns = engines.kernel_ns;
        c->used_ns = engines.download_ns;
        forecast.kernel_ns += kernel_ns;
        if (engines.kernel_ns + all_ns - forecast.kernel_ns > most_ns)
            return forecast;
    }
    forecast.ns = engines.download_ns * times;
    forecast.upload_ns *= times;
    forecast.kernel_ns *= times;
    forecast.last_ns = engines.download_ns - engines.kernel_ns;
    return forecast;
}

struct mm_tiling_times mm_tiling_forecast(const struct mm_tiling *tiling, const struct mm_plan *plan,
                                          const struct mm_product *product) {
    const struct rates rates = rates_of(plan, product);
    return play(tiling, product, &rates, INFINITY);
}

/* --- the search ---------------------------------------------------------------------------------- */

static size_t slot_bytes(const struct mm_matrix *matrix) {
    return mm_size_round_up(mm_matrix_bytes(matrix), ALIGNMENT);
}

size_t mm_tiling_workspace(const struct mm_plan *plan) {
    return plan->kept.bytes[0] + plan->kept.bytes[1] > 0 ? plan->kept.workspace_bytes : plan->workspace_bytes;
}

/* Sets the numbers of panels and slots, and the bytes of the slots without derived data. */
static void size_slots(const struct mm_product *product, struct mm_tiling *tiling) {
    const struct mm_tiling_step largest = {0};
    const struct mm_product cut = mm_tiling_part(tiling, product, &largest), part = mm_product_dense(&cut);
    tiling->a_panels = mm_size_divide_up(product->m, tiling->rows);
    tiling->b_panels = mm_size_divide_up(product->n, tiling->cols);
    tiling->a_slots = (unsigned)mm_size_min(tiling->a_slots, tiling->a_panels);
    tiling->b_slots = (unsigned)mm_size_min(tiling->b_slots, tiling->b_panels);
    tiling->a_bytes = tiling->in_place >> MM_OPERAND_A & 1 ? 0 : slot_bytes(&part.a);
    tiling->b_bytes = tiling->in_place >> MM_OPERAND_B & 1 ? 0 : slot_bytes(&part.b);
    tiling->c_bytes = slot_bytes(&part.c) + slot_bytes(&part.addend) + slot_bytes(&part.bias);
}

/* Sets the bytes of the workspace, and adds the bytes of derived data. Tiles at the edges of C have fewer
 * rows or columns, and can need more than the others. Returns false if the variant does not support a tile.
 */
static bool add_plans(const struct mm_plan *plan, const struct mm_product *product,
                      struct mm_tiling *tiling) {
    for (unsigned corner = 0; corner < 4; corner++) {
        const struct mm_tiling_step tile = mm_tiling_corner(tiling, corner);
        const struct mm_product cut = mm_tiling_part(tiling, product, &tile), part = mm_product_dense(&cut);
        struct mm_plan of_tile;
        if (mm_plan_make(plan->device, plan->variant, &part, &of_tile, NULL) != MM_OK)
            return false;
        const size_t *kept = of_tile.kept.bytes;
        tiling->workspace_bytes = mm_size_max(tiling->workspace_bytes, mm_tiling_workspace(&of_tile));
        tiling->a_kept_bytes = mm_size_max(tiling->a_kept_bytes, mm_size_round_up(kept[0], ALIGNMENT));
        tiling->b_kept_bytes = mm_size_max(tiling->b_kept_bytes, mm_size_round_up(kept[1], ALIGNMENT));
    }
    tiling->a_bytes += tiling->a_kept_bytes;
    tiling->b_bytes += tiling->b_kept_bytes;
    return true;
}

/* Returns the next number to try: one more, or a quarter more. */
static size_t next(size_t tried) {
    return tried + (tried < 8 ? 1 : tried / 4);
}

/* The best tiles so far. */
struct search {
    const struct mm_plan *plan;
    const struct mm_product *product;
    size_t bytes;
    struct rates rates;
    struct mm_tiling best; /* only the last three members are set if no tiles were found */
    double best_ns;        /* INFINITY if no tiles were found */
};

static double upload_bytes(const struct search *search, enum mm_operand_index index) {
    const bool is_copied = search->best.uploads >> index & 1;
    return is_copied ? (double)mm_matrix_bytes(mm_product_operand(search->product, index)) : 0.0;
}

/* Returns a time that the product needs at least with B and C copied once, and A this many times. */
static double least_ns(const struct search *search, double times, double tiles) {
    const struct mm_product *product = search->product;
    const double up_bytes = times * upload_bytes(search, MM_OPERAND_A) + upload_bytes(search, MM_OPERAND_B);
    const double down_bytes = search->best.downloads ? (double)mm_matrix_bytes(&product->c) : 0.0;
    const double copies_ns = fmax(up_bytes, down_bytes) * search->rates.byte;
    const double kernels_ns =
        (double)product->m * (double)product->n * search->rates.element + tiles * launch_ns;
    return fmax(copies_ns, kernels_ns);
}

/* Whether these tiles can be faster than the best ones. Each group copies A, except the panels that are still
 * on the device. */
static bool is_worth(const struct search *search, const struct mm_tiling *tiling) {
    const double groups = (double)mm_size_divide_up(tiling->b_panels, tiling->b_slots);
    const double again = 1.0 - (double)tiling->a_slots / (double)tiling->a_panels;
    return least_ns(search, 1.0 + (groups - 1.0) * again, (double)mm_tiling_count(tiling)) < search->best_ns;
}

/* Whether the best tiles are so good that no others can be much faster. */
static bool is_good(const struct search *search) {
    return search->best_ns < 1.01 * least_ns(search, 1.0, 0.0);
}

/* Tries tiles with more and more rows, while they fit. Plans only tiles that are faster than the best ones,
 * because planning takes the most time. */
static void try_rows(struct search *search, struct mm_tiling tiling, size_t unit) {
    for (size_t times = 1; tiling.rows < search->product->m && !is_good(search); times = next(times)) {
        struct mm_tiling tried = tiling;
        tried.rows = tiling.rows = mm_size_min(times * unit, search->product->m);
        size_slots(search->product, &tried);
        if (mm_tiling_bytes(&tried) > search->bytes)
            return;
        if (mm_tiling_count(&tried) > TILES_MAX || !is_worth(search, &tried))
            continue;
        const double ns = play(&tried, search->product, &search->rates, search->best_ns).ns;
        if (ns >= search->best_ns || !add_plans(search->plan, search->product, &tried))
            continue;
        if (mm_tiling_bytes(&tried) > search->bytes)
            return;
        search->best_ns = ns;
        search->best = tried;
    }
}

/* Returns the multiple of the block's edge that is at least EDGE_MIN. */
static size_t unit_of(unsigned block) {
    return mm_size_round_up(EDGE_MIN, block > 0 ? block : EDGE_MIN);
}

bool mm_tiling_make(const struct mm_plan *plan, const struct mm_product *product, size_t bytes,
                    struct mm_tiling *tiling) {
    const size_t rows_unit = unit_of(plan->layout.block_rows), cols_unit = unit_of(plan->layout.block_cols);
    const size_t groups_max = mm_size_divide_up(product->n, cols_unit);
    struct search search = {.plan = plan,
                            .product = product,
                            .bytes = bytes,
                            .best = *tiling,
                            .rates = rates_of(plan, product),
                            .best_ns = INFINITY};
    assert(product->stack == NULL && product->m > 0 && product->n > 0);
    for (size_t groups = 1, tried = 0; tried < groups_max; groups = mm_size_min(next(groups), groups_max)) {
        for (unsigned b_slots = 1; b_slots <= MM_TILING_SLOTS_MAX; b_slots *= 2)
            for (unsigned a_slots = 2; a_slots <= MM_TILING_SLOTS_MAX; a_slots *= 2) {
                const size_t cols = mm_size_divide_up(product->n, groups * b_slots);
                const struct mm_tiling tiles = {.cols = mm_size_round_up(cols, cols_unit),
                                                .a_slots = a_slots,
                                                .b_slots = b_slots,
                                                .uploads = tiling->uploads,
                                                .in_place = tiling->in_place,
                                                .downloads = tiling->downloads};
                try_rows(&search, tiles, rows_unit);
            }
        tried = groups;
    }
    *tiling = search.best;
    return search.best_ns < INFINITY;
}
