#include "fake_cuda.h"
#include "gpu/check/verify.h"
#include "gpu/cuda/variants/finish.h"
#include "tests/unit/unit.h"

struct fake_cuda fake_cuda;
const struct fake_kernels fake_kernels;

/* --- races: vector clocks (L. Lamport, 1978; C. Fidge, 1988) -------------------------------------- */

/* How many operations of each stream have surely ended. */
struct clock {
    size_t of[FAKE_STREAMS];
};

/* Rows of row_bytes bytes, which begin at multiples of `pitch` after `begin`. If there is one row, `pitch` is
 * 0. */
struct access {
    const char *begin, *end;
    size_t pitch, row_bytes;
    bool writes;
    size_t stream, time;
};

enum { ACCESSES_MAX = 8192 };

static struct clock streams[FAKE_STREAMS], events[FAKE_EVENTS], host;
static struct access accesses[ACCESSES_MAX];
static size_t access_count;

static void join(struct clock *into, const struct clock *other) {
    for (size_t stream = 0; stream < FAKE_STREAMS; stream++)
        if (other->of[stream] > into->of[stream])
            into->of[stream] = other->of[stream];
}

static struct clock *clock_of(cudaStream_t stream) {
    assert_true((uintptr_t)stream < FAKE_STREAMS);
    return &streams[(uintptr_t)stream];
}

/* Returns NULL for an event that orders no streams. */
static struct clock *clock_of_event(cudaEvent_t event) {
    return (uintptr_t)event < FAKE_EVENTS ? &events[(uintptr_t)event] : NULL;
}

void fake_forget(void) {
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    memset(&host, 0, sizeof host);
    access_count = 0;
}

/* Whether the rows of one access lie in the gaps between the rows of the other. */
static bool is_in_gaps(const struct access *one, const struct access *other) {
    const ptrdiff_t pitch = (ptrdiff_t)(one->pitch > 0 ? one->pitch : other->pitch);
    if (pitch == 0 || (other->pitch > 0 && one->pitch > 0 && one->pitch != other->pitch))
        return false;
    const size_t shift = (size_t)(((other->begin - one->begin) % pitch + pitch) % pitch);
    return shift >= one->row_bytes && shift + other->row_bytes <= (size_t)pitch;
}

/* Notes an access to a matrix by the stream's current operation. */
static void touch_rows(cudaStream_t stream, const void *memory, size_t rows, size_t pitch, size_t row_bytes,
                       bool writes) {
    const size_t bytes = rows == 0 || row_bytes == 0 ? 0 : (rows - 1) * pitch + row_bytes;
    const struct clock *now = clock_of(stream);
    const struct access access = {.begin = memory,
                                  .end = (const char *)memory + bytes,
                                  .pitch = rows > 1 ? pitch : 0,
                                  .row_bytes = row_bytes,
                                  .writes = writes,
                                  .stream = (uintptr_t)stream,
                                  .time = now->of[(uintptr_t)stream]};
    for (size_t index = 0; index < access_count; index++) {
        const struct access *old = &accesses[index];
        if (old->begin < access.end && access.begin < old->end && (old->writes || writes) &&
            now->of[old->stream] < old->time && !is_in_gaps(old, &access))
            fake_cuda.races++;
    }
    if (bytes > 0 && access_count < ACCESSES_MAX)
        accesses[access_count++] = access;
}

static void touch(cudaStream_t stream, const void *memory, size_t bytes, bool writes) {
    touch_rows(stream, memory, 1, bytes, bytes, writes);
}

/* Begins an operation. The host enqueues it after all that the host has waited for. */
static void begin_operation(cudaStream_t stream) {
    join(clock_of(stream), &host);
    clock_of(stream)->of[(uintptr_t)stream]++;
}

static void forget_memory(const char *begin, size_t bytes) {
    size_t kept = 0;
    for (size_t index = 0; index < access_count; index++)
        if (accesses[index].end <= begin || accesses[index].begin >= begin + bytes)
            accesses[kept++] = accesses[index];
    access_count = kept;
}

void fake_expect_written(const void *memory, size_t bytes) {
    const char *begin = memory;
    for (size_t index = 0; index < access_count; index++)
        if (accesses[index].begin < begin + bytes && begin < accesses[index].end)
            assert_true(accesses[index].time <= host.of[accesses[index].stream]);
}

static void touch_matrix(cudaStream_t stream, const struct mm_matrix *matrix, bool writes) {
    const size_t element_bytes = mm_dtype_bytes(matrix->dtype);
    touch_rows(stream, matrix->data, matrix->rows, matrix->ld * element_bytes, matrix->cols * element_bytes,
               writes);
}

/* --- the runtime --------------------------------------------------------------------------------- */

cudaError_t cudaSetDevice(int index) {
    fake_cuda.current = index;
    return cudaSuccess;
}

static cudaError_t repeat_error(void) {
    return fake_cuda.is_lost[fake_cuda.current] ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    return repeat_error();
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code) {
    return "simulated error";
}

const char *cudaGetErrorName(cudaError_t code) {
    return "simulated";
}

/* Each allocation begins with its size. */
enum { HEAD = 256 };

cudaError_t cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    if (bytes > fake_cuda.memory_max - fake_cuda.memory_used)
        return cudaErrorMemoryAllocation;
    char *piece = aligned_alloc(HEAD, HEAD + (bytes + HEAD - 1) / HEAD * HEAD);
    assert_non_null(piece);
    memcpy(piece, &bytes, sizeof bytes);
    memset(piece + HEAD, 0xff, bytes); /* fills with NaN */
    fake_cuda.memory_used += bytes;
    fake_cuda.allocations++;
    begin_operation(stream);
    touch(stream, piece + HEAD, bytes, true);
    *memory = piece + HEAD;
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
    size_t bytes;
    memcpy(&bytes, (char *)memory - HEAD, sizeof bytes);
    fake_cuda.memory_used -= bytes;
    begin_operation(stream);
    touch(stream, memory, bytes, true);
    forget_memory(memory, bytes);
    free((char *)memory - HEAD);
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    *(uint64_t *)value = fake_cuda.memory_used;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = fake_cuda.memory_max;
    *free_bytes = fake_cuda.memory_max - fake_cuda.memory_used;
    return repeat_error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    join(&host, clock_of(stream));
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    fake_cuda.streams++;
    *stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    fake_cuda.streams--;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (clock_of_event(event) != NULL)
        *clock_of_event(event) = *clock_of(stream);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    *event = (cudaEvent_t)(uintptr_t)(FAKE_EVENTS - 1 - fake_cuda.events++ % (FAKE_EVENTS / 4));
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    fake_cuda.events--;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    if (clock_of_event(event) != NULL)
        join(clock_of(stream), clock_of_event(event));
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    assert_non_null(event);
    if (clock_of_event(event) != NULL && !fake_cuda.is_late)
        join(&host, clock_of_event(event));
    return fake_cuda.is_late ? cudaErrorNotReady : fake_cuda.event_fails;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (clock_of_event(event) != NULL)
        join(&host, clock_of_event(event));
    return fake_cuda.event_fails;
}

/* The value of an event is its time in milliseconds. The host must have waited for the event. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    for (size_t stream = 0; stream < FAKE_STREAMS; stream++)
        if (events[(uintptr_t)to].of[stream] > host.of[stream])
            return cudaErrorNotReady;
    *ms = (float)((uintptr_t)to - (uintptr_t)from);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    fake_cuda.copies++;
    begin_operation(stream);
    touch(stream, from, bytes, false);
    touch(stream, to, bytes, true);
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t row_bytes, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (to_pitch > fake_cuda.pitch_max || from_pitch > fake_cuda.pitch_max)
        return cudaErrorInvalidPitchValue;
    fake_cuda.copies++;
    begin_operation(stream);
    touch_rows(stream, from, rows, from_pitch, row_bytes, false);
    touch_rows(stream, to, rows, to_pitch, row_bytes, true);
    for (size_t row = 0; row < rows; row++)
        memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, row_bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *copy, cudaStream_t stream) {
    assert_int_equal(copy->extent.depth, 1);
    assert_int_not_equal(copy->srcDevice, copy->dstDevice);
    return cudaMemcpy2DAsync(copy->dstPtr.ptr, copy->dstPtr.pitch, copy->srcPtr.ptr, copy->srcPtr.pitch,
                             copy->extent.width, copy->extent.height, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream) {
    const struct cudaPitchedPtr *to = &copy->dstPtr, *from = &copy->srcPtr;
    assert_true(from->pitch <= fake_cuda.pitch_max && to->pitch <= fake_cuda.pitch_max);
    fake_cuda.copies++;
    for (size_t layer = 0; layer < copy->extent.depth; layer++)
        for (size_t row = 0; row < copy->extent.height; row++)
            memcpy((char *)to->ptr + (layer * to->ysize + row) * to->pitch,
                   (const char *)from->ptr + (layer * from->ysize + row) * from->pitch, copy->extent.width);
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    fake_cuda.attributes_read++;
    *attributes = (struct cudaFuncAttributes){.sharedSizeBytes = fake_cuda.static_bytes,
                                              .numRegs = 32,
                                              .maxDynamicSharedSizeBytes = (int)fake_cuda.dynamic_max};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
    fake_cuda.attributes_set++;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        fake_cuda.static_bytes + (size_t)value > fake_cuda.block_max)
        return cudaErrorInvalidValue;
    fake_cuda.dynamic_max = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes) {
    *blocks = dynamic_bytes <= fake_cuda.dynamic_max ? 2 : 0;
    return cudaSuccess;
}

cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream) {
    return cudaSuccess;
}

void mm_cuda_gate_open(struct mm_cuda_gate *gate) {
}

bool mm_cuda_gate_timed_out(const struct mm_cuda_gate *gate) {
    return false;
}

cudaError_t mm_cuda_gather(const struct mm_cuda_copies *copies, cudaStream_t stream) {
    unsigned words_max = 0;
    assert_in_range(copies->count, 1, 2 * MM_BATCH_MAX);
    for (unsigned index = 0; index < copies->count; index++) {
        const unsigned words = copies->copies[index].words;
        assert_int_not_equal(words, 0);
        words_max = words > words_max ? words : words_max;
        fake_cuda.gathered_words += words;
        memcpy(copies->copies[index].to, copies->copies[index].from, words * sizeof(unsigned));
    }
    assert_int_equal(copies->words_max, words_max);
    fake_cuda.gathers++;
    return cudaSuccess;
}

cudaError_t mm_cuda_generate(const struct mm_cuda_generated *generated, enum mm_dtype dtype,
                             const struct mm_cuda_device *made_on, cudaStream_t stream) {
    assert_in_range(generated->count, 1, MM_BATCH_MAX);
    begin_operation(stream);
    for (unsigned index = 0; index < generated->count; index++) {
        touch(stream, generated->operands[index].to,
              generated->operands[index].elements * mm_dtype_bytes(dtype), true);
        const size_t elements = generated->operands[index].elements, cols = generated->operands[index].cols;
        const struct mm_matrix operand =
            mm_matrix_dense(dtype, elements / cols, cols, generated->operands[index].to);
        const struct mm_source source = {.kind = generated->operands[index].kind,
                                         .seed = generated->operands[index].number,
                                         .rows = generated->operands[index].number,
                                         .first = generated->operands[index].first,
                                         .gap = generated->operands[index].gap};
        (void)mm_source_generate(&source, &operand, 0, elements, NULL);
    }
    fake_cuda.makes++;
    return cudaSuccess;
}

size_t mm_cuda_reduce_bytes(void) {
    return sizeof(struct mm_reduction);
}

enum mm_status mm_cuda_reduce(const struct mm_matrix *c, const struct mm_window *part, void *memory,
                              struct mm_lane *lane, struct mm_error *error) {
    const float *elements = c->data;
    assert_int_equal((uintptr_t)memory % 256, 0);
    begin_operation(lane->stream);
    touch_matrix(lane->stream, c, false);
    touch(lane->stream, memory, mm_cuda_reduce_bytes(), true);
    for (size_t row = 0; row < part->count * part->rows; row++) { /* in the order of mm_reduce_part */
        const size_t all_row = row / part->rows * part->all_rows + part->row + row % part->rows;
        struct mm_reduction one = mm_reduction_none();
        for (size_t col = 0; col < part->cols; col++)
            mm_reduce_real(&one, (double)elements[all_row * part->all_cols + part->col + col],
                           row % part->rows + part->diagonal == col);
        mm_reduce_merge(lane->reduction, &one);
    }
    fake_cuda.reductions++;
    return MM_OK;
}

size_t mm_cuda_verify_bytes(const struct mm_product *product) {
    return mm_verify_bytes(product);
}

enum mm_status mm_cuda_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                              size_t count, uint64_t seed, void *memory, struct mm_lane *lane,
                              struct mm_error *error) {
    if (fake_cuda.check_fails != cudaSuccess)
        return mm_cuda_status(lane->device, fake_cuda.check_fails, "checking a product", error);
    assert_int_equal((uintptr_t)memory % 256, 0);
    mm_verify(product, arithmetic, mm_verify_seed(), memory, lane->verification);
    fake_cuda.checks++;
    return MM_OK;
}

enum mm_status mm_cuda_verify_tile(const struct mm_product *tile, enum mm_arithmetic arithmetic,
                                   struct mm_cuda_check_part part, uint64_t seed, void *memory,
                                   struct mm_lane *lane, struct mm_error *error) {
    struct mm_verification mine, *all = lane->verification;
    assert_int_equal((uintptr_t)memory % 256, 0);
    begin_operation(lane->stream);
    touch_matrix(lane->stream, &tile->a, false);
    touch_matrix(lane->stream, &tile->b, false);
    touch_matrix(lane->stream, &tile->c, false);
    touch_matrix(lane->stream, &tile->addend, false);
    touch_matrix(lane->stream, &tile->bias, false);
    touch(lane->stream, memory, mm_verify_bytes(tile), true);
    mm_verify(tile, arithmetic, seed, memory, &mine);
    mine.row += part.row;
    if (part.is_first)
        *all = (struct mm_verification){.is_done = true, .seed = seed};
    mm_verify_merge(all, &mine);
    if (part.is_counted_before) {
        all->rows_checked -= mine.rows_checked;
        all->rows_unjudged -= mine.rows_unjudged;
    }
    fake_cuda.checks++;
    return MM_OK;
}

void fake_compute(const struct mm_product *product, bool transposes) {
    const float *a = product->a.data, *b = product->b.data;
    const size_t row_step = transposes ? 1 : product->a.ld, col_step = transposes ? product->a.ld : 1;
    const size_t b_row_step = product->transpose_b ? 1 : product->b.ld;
    const size_t b_col_step = product->transpose_b ? product->b.ld : 1;
    for (size_t row = 0; row < product->m; row++) {
        for (size_t col = 0; col < product->n; col++) {
            float sum = 0.0F;
            for (size_t i = 0; i < product->k; i++)
                sum += a[row * row_step + i * col_step] * b[i * b_row_step + col * b_col_step];
            mm_store_c_float(product, row, col, sum);
        }
    }
}

/* Returns an operand of an item. Kernels only read operands. */
static struct mm_matrix item_matrix(size_t rows, size_t cols, const void *data) {
    union {
        const void *constant;
        void *data;
    } address = {data};
    return mm_matrix_dense(MM_FLOAT32, rows, cols, address.data);
}

static void compute_items(const struct mm_cuda_items *items, unsigned count, bool transposes) {
    for (unsigned index = 0; index < count; index++) {
        const struct mm_cuda_item *item = &items->items[index];
        const struct mm_product product = {
            .m = item->m,
            .n = item->n,
            .k = item->k,
            .a = item_matrix(transposes ? item->k : item->m, transposes ? item->m : item->k, item->a),
            .b = item_matrix(item->k, item->n, item->b),
            .c = mm_matrix_dense(item->c_dtype, item->m, item->n, item->c)};
        assert_int_equal(item->split_depth, item->k < 2 ? item->k : fake_split_depth(item->k));
        fake_compute(&product, transposes);
    }
}

struct mm_layout mm_cuda_finish_layout(enum mm_dtype dtype) {
    return (struct mm_layout){
        .kernel = &fake_kernels.pass, .block_rows = 64, .block_cols = 32, .threads_x = 32, .threads_y = 8};
}

static void finish(const struct mm_cuda_sums *sums) {
    for (size_t row = 0; row < sums->m; row++)
        for (size_t col = 0; col < sums->n; col++) {
            const float sum = ((const float *)sums->sums)[row * sums->sums_ld + col];
            mm_store_float(sums->terms.dtype, sums->c, row * sums->c_ld + col,
                           mm_finish_float(&sums->terms, row, col, sum));
        }
}

static bool is_for_batches(const void *kernel) {
    return kernel == &fake_kernels.plain_batch || kernel == &fake_kernels.transposed_batch;
}

static bool is_ours(const void *kernel) {
    return kernel == &fake_kernels.plain || kernel == &fake_kernels.transposed ||
           kernel == &fake_kernels.lonely;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel, void **arguments) {
    if (fake_cuda.launch_fails != cudaSuccess && fake_cuda.launches_left == 0)
        return fake_cuda.launch_fails;
    fake_cuda.launches_left -= fake_cuda.launches_left > 0;
    begin_operation(launch->stream);
    if (launch->dynamicSmemBytes > fake_cuda.dynamic_max || launch->gridDim.y > FAKE_GRID_Y_MAX)
        return cudaErrorInvalidValue;
    fake_cuda.launched_bytes = launch->dynamicSmemBytes;
    fake_cuda.may_begin_before = launch->numAttrs == 1 &&
                                 launch->attrs[0].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                                 launch->attrs[0].val.programmaticStreamSerializationAllowed == 1;
    if (is_for_batches(kernel)) {
        fake_cuda.batches++;
        fake_cuda.grid = launch->gridDim;
        assert_int_equal(((const struct mm_cuda_items *)arguments[0])->tile, FAKE_BLOCK);
        assert_int_equal(((const struct mm_cuda_items *)arguments[0])->block_rows, FAKE_BLOCK);
        assert_int_equal(((const struct mm_cuda_items *)arguments[0])->block_cols, FAKE_BLOCK);
        assert_int_equal(((const struct mm_cuda_items *)arguments[0])->stack.rank, 0);
        compute_items(arguments[0], launch->gridDim.z, kernel == &fake_kernels.transposed_batch);
    } else if (kernel == &fake_kernels.pass) {
        fake_cuda.passes++;
        for (unsigned index = 0; index < launch->gridDim.y; index++) {
            const struct mm_cuda_sums *sums = &((const struct mm_cuda_pass *)arguments[0])->of[index];
            touch(launch->stream, sums->c, sums->m * sums->c_ld * sizeof(float), true);
            if (sums->terms.addend != NULL)
                touch(launch->stream, sums->terms.addend, sums->m * sums->n * sizeof(float), false);
            if (sums->terms.bias != NULL)
                touch(launch->stream, sums->terms.bias, sums->n * sizeof(float), false);
            finish(sums);
        }
    } else if (!is_ours(kernel)) {
        assert_true(fake_cuda.notes < 4);
        fake_cuda.noted[fake_cuda.notes].product = *(const struct mm_product *)arguments[0];
        fake_cuda.noted[fake_cuda.notes++].grid = launch->gridDim;
    } else {
        const struct mm_product *product = arguments[0];
        fake_cuda.launches++;
        touch_matrix(launch->stream, &product->a, false);
        touch_matrix(launch->stream, &product->b, false);
        touch_matrix(launch->stream, &product->c, true);
        fake_compute(product, kernel == &fake_kernels.transposed);
    }
    return cudaSuccess;
}
