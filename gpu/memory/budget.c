#include "gpu/memory/budget.h"

#include "gpu/matrix/matrix.h"

#include <assert.h>

/* A request is small if it needs at most a 256th of the budget, or at most 64 KiB. */
enum { SMALL_PART = 16, SMALL_REQUEST_PART = 256, SMALL_REQUEST_MIN = 64 << 10 };

enum { STEP_MIN = 64 << 10, STEP_MAX = 2 << 20 };

size_t mm_budget_main_bytes(size_t bytes) {
    return bytes - bytes / SMALL_PART;
}

bool mm_budget_open(struct mm_budget *budget, size_t bytes) {
    *budget = (struct mm_budget){.buffers = mm_buffers_open(bytes), .bytes = bytes};
    budget->part_bytes[MM_BUDGET_MAIN] = mm_budget_main_bytes(bytes);
    budget->part_bytes[MM_BUDGET_SMALL] = bytes - budget->part_bytes[MM_BUDGET_MAIN];
    budget->small_bytes_max =
        bytes / SMALL_REQUEST_PART > SMALL_REQUEST_MIN ? bytes / SMALL_REQUEST_PART : SMALL_REQUEST_MIN;
    return budget->buffers != NULL;
}

void mm_budget_close(struct mm_budget *budget) {
    assert(mm_budget_used(budget) == 0);
    mm_buffers_close(budget->buffers);
}

static size_t reserved(const struct mm_budget *budget, int part) {
    return __atomic_load_n(&budget->reserved_bytes[part], __ATOMIC_RELAXED);
}

size_t mm_budget_used(const struct mm_budget *budget) {
    return reserved(budget, MM_BUDGET_MAIN) + reserved(budget, MM_BUDGET_SMALL);
}

size_t mm_budget_free_bytes(const struct mm_budget *budget, int part) {
    return budget->part_bytes[part] - mm_size_min(budget->part_bytes[part], reserved(budget, part));
}

static size_t waiting(const struct mm_budget *budget, int part) {
    return __atomic_load_n(&budget->waiting[part].all, __ATOMIC_RELAXED);
}

bool mm_budget_is_awaited(const struct mm_budget *budget) {
    return waiting(budget, MM_BUDGET_MAIN) + waiting(budget, MM_BUDGET_SMALL) > 0;
}

/* Reserves `bytes` in this part of the budget. Returns false if the part has too few free bytes. */
static bool add(struct mm_budget *budget, int part, size_t bytes) {
    size_t held = reserved(budget, part);
    do {
        if (held > budget->part_bytes[part] || bytes > budget->part_bytes[part] - held)
            return false;
    } while (!__atomic_compare_exchange_n(&budget->reserved_bytes[part], &held, held + bytes, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

static void subtract(struct mm_budget *budget, int part, size_t bytes) {
    const size_t before = __atomic_fetch_sub(&budget->reserved_bytes[part], bytes, __ATOMIC_RELAXED);
    assert(before >= bytes);
    (void)before;
}

void mm_budget_free(struct mm_budget *budget, struct mm_buffer *buffer) {
    subtract(budget, MM_BUDGET_MAIN, buffer->bytes);
    mm_buffers_release(budget->buffers, buffer);
}

static void set_bytes(struct mm_reservation *reservation, size_t bytes) {
    size_t *of_client = &reservation->budget->client_bytes[reservation->client];
    __atomic_add_fetch(of_client, bytes - reservation->bytes, __ATOMIC_RELAXED); /* may wrap around */
    __atomic_store_n(&reservation->bytes, bytes, __ATOMIC_RELAXED);
}

int mm_reservation_line(const struct mm_reservation *reservation, size_t more) {
    const size_t most = reservation->budget->small_bytes_max;
    const bool is_small = !reservation->is_for_store && reservation->expected_bytes <= most &&
                          reservation->bytes <= most && more <= most - reservation->bytes;
    return is_small ? MM_BUDGET_SMALL : MM_BUDGET_MAIN;
}

/* Reserves `more` bytes in this part of the budget. If the reservation is in another part, moves all of its
 * bytes to this part. */
static bool extend_in(struct mm_reservation *reservation, int part, size_t more) {
    struct mm_budget *budget = reservation->budget;
    const size_t held = reservation->bytes;
    const bool moves = part != reservation->part;
    if (!add(budget, part, moves ? held + more : more))
        return false;
    if (moves)
        subtract(budget, reservation->part, held);
    __atomic_store_n(&reservation->part, part, __ATOMIC_RELAXED);
    set_bytes(reservation, held + more);
    return true;
}

bool mm_reservation_extend(struct mm_reservation *reservation, size_t more) {
    if (more > reservation->budget->bytes)
        return false;
    if (mm_reservation_line(reservation, more) == MM_BUDGET_MAIN)
        return extend_in(reservation, MM_BUDGET_MAIN, more);
    return (waiting(reservation->budget, MM_BUDGET_MAIN) == 0 &&
            extend_in(reservation, MM_BUDGET_MAIN, more)) ||
           extend_in(reservation, MM_BUDGET_SMALL, more);
}

bool mm_reservation_is_unfair(const struct mm_reservation *reservation, size_t more, bool is_waiting) {
    const struct mm_budget *budget = reservation->budget;
    const unsigned client = reservation->client;
    const size_t held = __atomic_load_n(&budget->client_bytes[client], __ATOMIC_RELAXED);
    const size_t stuck = __atomic_load_n(&budget->client_waiting_bytes[client], __ATOMIC_RELAXED) +
                         (is_waiting ? 0 : reservation->bytes);
    return held > stuck && held + more > budget->bytes / 2;
}

bool mm_reservation_try(struct mm_reservation *reservation, size_t more) {
    const struct mm_budget *budget = reservation->budget;
    const int line = mm_reservation_line(reservation, more);
    const size_t holders = __atomic_load_n(&budget->waiting[line].holders, __ATOMIC_RELAXED);
    const bool is_first = reservation->bytes > 0 && !mm_reservation_is_unfair(reservation, more, false)
                              ? holders == 0
                              : waiting(budget, line) == 0;
    return is_first && mm_reservation_extend(reservation, more);
}

size_t mm_reservation_step(size_t bytes) {
    return bytes < STEP_MIN ? STEP_MIN : mm_size_min(bytes, STEP_MAX);
}

size_t mm_reservation_unused(const struct mm_reservation *reservation) {
    return reservation->bytes - reservation->used_bytes;
}

enum mm_status mm_reservation_ensure(struct mm_reservation *reservation, size_t bytes,
                                     struct mm_error *error) {
    const size_t unused = mm_reservation_unused(reservation);
    const bool moves = reservation->is_for_store && reservation->part == MM_BUDGET_SMALL;
    if ((bytes <= unused && !moves) || mm_reservation_try(reservation, bytes - mm_size_min(bytes, unused)))
        return MM_OK;
    mm_fail_busy(error, MM_BUSY_MEMORY, "memory is full (--memory-budget); try again later");
    if (error != NULL)
        error->needed_bytes = bytes > 0 ? bytes : 1;
    return MM_BUSY;
}

enum mm_status mm_reservation_acquire(struct mm_reservation *reservation, size_t bytes,
                                      struct mm_buffer *buffer, struct mm_error *error) {
    if (bytes == 0)
        bytes = 1;
    enum mm_status status = mm_reservation_ensure(reservation, bytes, error);
    if (status == MM_OK)
        status = mm_buffers_acquire(reservation->budget->buffers, bytes, buffer, error);
    if (status == MM_OK)
        reservation->used_bytes += bytes;
    return status;
}

enum mm_status mm_reservation_grow(struct mm_reservation *reservation, size_t bytes, size_t bytes_max,
                                   struct mm_buffer *buffer, struct mm_error *error) {
    const size_t before = buffer->bytes;
    if (bytes <= before)
        return MM_OK;
    enum mm_status status = mm_reservation_ensure(reservation, bytes - before, error);
    if (status == MM_OK)
        status = mm_buffers_grow(reservation->budget->buffers, bytes, bytes_max, buffer, error);
    if (status == MM_OK)
        reservation->used_bytes += bytes - before;
    return status;
}

void mm_reservation_shrink(struct mm_reservation *reservation, struct mm_buffer *buffer, size_t bytes) {
    reservation->used_bytes -= buffer->bytes;
    mm_buffers_shrink(reservation->budget->buffers, buffer, bytes);
    reservation->used_bytes += buffer->bytes;
}

void mm_reservation_settle(struct mm_reservation *reservation, struct mm_buffer *buffer) {
    mm_buffers_settle(reservation->budget->buffers, buffer);
}

void mm_reservation_free(struct mm_reservation *reservation, struct mm_buffer *buffer) {
    reservation->used_bytes -= buffer->bytes;
    mm_buffers_release(reservation->budget->buffers, buffer);
}

void mm_reservation_trim(struct mm_reservation *reservation) {
    const size_t unused = mm_reservation_unused(reservation);
    if (unused == 0)
        return;
    set_bytes(reservation, reservation->used_bytes);
    subtract(reservation->budget, reservation->part, unused);
}

void mm_reservation_close(struct mm_reservation *reservation) {
    reservation->used_bytes = 0;
    mm_reservation_trim(reservation);
}

void mm_reservation_hand_over(struct mm_reservation *reservation, const struct mm_buffer *buffer) {
    assert(buffer->bytes == 0 || reservation->part == MM_BUDGET_MAIN);
    reservation->used_bytes -= buffer->bytes;
    set_bytes(reservation, reservation->bytes - buffer->bytes);
}
