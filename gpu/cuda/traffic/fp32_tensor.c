/* The traffic of `fp32_tensor`: variants/fp32_tensor/{split,product,repair}.cu, whose comments say which
 * thread accesses what. It is that of products whose elements are all certified, of operands that are not
 * stored. The tensor cores read shared memory by themselves, so passes over its banks are not predicted. */
#include "gpu/device/backend.h"
#include "gpu/cuda/traffic/count.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/fp32_tensor/parts.h"

static void add(struct mm_traffic *traffic, enum mm_traffic_figure figure, uint64_t elements) {
    enum { ELEMENTS = MM_SECTOR_BYTES / sizeof(float) };
    traffic->figures[figure] += elements / ELEMENTS;
    if (figure == MM_GLOBAL_LOAD_SECTORS)
        traffic->figures[MM_GLOBAL_LOADS] += elements;
}

/* A word that all threads of so many warps load. */
static void add_flags(struct mm_traffic *traffic, uint64_t warps) {
    traffic->figures[MM_GLOBAL_LOADS] += warps * MM_WARP_LANES;
    traffic->figures[MM_GLOBAL_LOAD_SECTORS] += warps;
}

/* The splitting. Threads load 8 neighbours of a line along k, in two accesses, and again past the first 8192.
 * Lines across the rows are loaded twice, 4 a thread, with a line's scale for each 4 lines of a warp. */
static void count_split(struct mm_traffic *traffic, const struct mm_matrix *stored, bool is_along,
                        size_t padded, unsigned steps) {
    enum { KEPT = 8192, WIDE = 4 };
    const unsigned at_once = stored->ld % WIDE == 0 && stored->cols % WIDE == 0 ? WIDE : 1;
    const struct mm_share chunks = {1, MM_WARP_LANES * MM_FP32_CHUNK, MM_FP32_CHUNK, at_once, MM_WARP_LANES};
    const struct mm_share quads = {1, MM_WARP_LANES * WIDE, WIDE, at_once, MM_WARP_LANES};
    mm_count_loads(traffic, stored, is_along ? &chunks : &quads, is_along ? 1 : 2);
    if (is_along && stored->cols > KEPT) {
        struct mm_matrix rest = *stored;
        rest.cols -= KEPT;
        mm_count_loads(traffic, &rest, &chunks, 1);
    }
    if (is_along)
        traffic->figures[MM_GLOBAL_STORE_SECTORS] += stored->rows; /* the largest of each line, alone */
    else
        add_flags(traffic, steps * mm_size_divide_up(stored->cols, MM_WARP_LANES / MM_FP32_CHUNK));
    add(traffic, MM_GLOBAL_STORE_SECTORS, (uint64_t)padded * steps * MM_FP32_STEP);
}

/* At each step each block of a cluster gets a slab of A, and the one of B that they load together. Its
 * epilogue loads what is known of the lines, three words of each. Partial and flushed sums are stored, and
 * loaded again. */
static void count_product(struct mm_traffic *traffic, const struct mm_product *product,
                          const struct mm_schedule *schedule) {
    enum { LINES = MM_FP32_CLUSTER * (MM_FP32_EDGE + MM_FP32_WIDE), LINE_WORDS = 3 };
    enum { SUMS = MM_FP32_CLUSTER * MM_FP32_EDGE * MM_FP32_WIDE };
    enum { OF_BLOCKS = LINES * LINE_WORDS };
    const uint64_t tiles = (uint64_t)schedule->cluster_tile_rows * schedule->cluster_tile_cols;
    const uint64_t flushes = tiles * ((schedule->steps - 1) / MM_FP32_FLUSH_STEPS);
    const uint64_t sums = (mm_schedule_parts_of(schedule).continuing + flushes) * SUMS;
    const unsigned at_once = product->c.ld % 2 == 0 && product->n % 2 == 0 ? 2 : 1;
    const struct mm_share pairs = {8, 8, 2, at_once, MM_WARP_LANES};
    add(traffic, MM_GLOBAL_LOAD_SECTORS, tiles * schedule->steps * MM_FP32_STEP * LINES);
    add(traffic, MM_GLOBAL_LOAD_SECTORS, tiles * OF_BLOCKS + sums);
    add(traffic, MM_GLOBAL_STORE_SECTORS, sums);
    mm_count_stores(traffic, &product->c, &pairs, 1);
}

/* All warps of the kernels behind the splitting look whether they have to work: the product's at three words,
 * repair's at four, and those of `simt`, which may have to do it all, at one. */
static void count_flags(struct mm_traffic *traffic, const struct mm_product *product,
                        const struct mm_plan *plan, const struct mm_schedule *schedule) {
    enum { REPAIRING = 4, OF_REPAIR = 4, OF_PRODUCT = 3 };
    struct mm_plan simt = {.device = plan->device, .variant = plan->variant};
    const uint64_t blocks = (uint64_t)schedule->clusters * MM_FP32_CLUSTER;
    (void)mm_cuda_simt(product, &simt, NULL); /* it takes every shape */
    const struct mm_layout *layout = &simt.layout;
    if (layout->block_rows > 0)
        add_flags(traffic, mm_size_divide_up(product->m, layout->block_rows) *
                               mm_size_divide_up(product->n, layout->block_cols) * simt.splits *
                               (layout->threads_x / MM_WARP_LANES));
    add_flags(traffic, blocks * (MM_FP32_PRODUCT_THREADS / MM_WARP_LANES) * OF_PRODUCT);
    add_flags(traffic, (uint64_t)REPAIRING * plan->device->multiprocessors *
                           (MM_FP32_REPAIR_THREADS / MM_WARP_LANES) * OF_REPAIR);
}

bool mm_cuda_traffic_fp32_tensor(const struct mm_product *product, const struct mm_plan *plan,
                                 struct mm_traffic *traffic) {
    if (plan->layout.kernel != mm_fp32_product_kernel)
        return mm_cuda_traffic_simt(product, plan, traffic);
    const struct mm_schedule schedule = mm_fp32_schedule(product, plan->device);
    const size_t a_lines = (size_t)schedule.cluster_tile_rows * MM_FP32_CLUSTER * MM_FP32_EDGE;
    const size_t b_lines = (size_t)schedule.cluster_tile_cols * MM_FP32_WIDE;
    *traffic = (struct mm_traffic){0};
    count_split(traffic, &product->a, !product->transpose_a, a_lines, schedule.steps);
    count_split(traffic, &product->b, product->transpose_b, b_lines, schedule.steps);
    count_product(traffic, product, &schedule);
    count_flags(traffic, product, plan, &schedule);
    traffic->figures[MM_SHARED_LOAD_PASSES] = traffic->figures[MM_SHARED_STORE_PASSES] =
        traffic->figures[MM_BANK_CONFLICT_PASSES] = MM_TRAFFIC_UNKNOWN;
    return true;
}
