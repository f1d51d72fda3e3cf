/* Writes a probe's times and predictions, as JSON and as tables. Unmeasured values are null or a dash. */
#include "api/lab/access.h"

#include "api/json/json_value.h"
#include "api/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct row {
    const struct mm_access *access;
    struct mm_access_time time;
    uint32_t offsets[MM_WARP_LANES];
    unsigned bank_bytes;
    struct mm_bank_cost banks;     /* set for shared memory */
    struct mm_sector_cost sectors; /* set for global memory */
};

static struct row row_at(const struct mm_probe *probe, size_t index) {
    struct row row = {.access = &probe->accesses[index],
                      .time = probe->times[index],
                      .bank_bytes = mm_probe_bank_bytes(probe)};
    const unsigned word_bytes = row.access->word_bytes;
    mm_access_offsets(row.access, row.offsets);
    if (row.access->memory == MM_MEMORY_SHARED)
        row.banks = mm_banks_predict(row.offsets, word_bytes, row.bank_bytes);
    else
        row.sectors = mm_sectors_predict(row.offsets, word_bytes);
    return row;
}

static double bytes_per_cycle(const struct row *row) {
    return MM_WARP_LANES * row->access->word_bytes / row->time.cycles;
}

/* Whether a value was measured. A value that was not measured is 0, or the result of a division by 0. */
static bool is_known(double value) {
    return value > 0 && isfinite(value);
}

static json_t *make_measured(double value) {
    return is_known(value) ? json_real(round(value * 1e3) / 1e3) : json_null();
}

/* Returns a list of the lanes' banks, with null for an inactive lane. */
static json_t *make_banks(const struct row *row) {
    json_t *list = json_array();
    int failed = 0;
    for (unsigned lane = 0; lane < MM_WARP_LANES && failed == 0; lane++)
        failed |=
            json_array_append_new(list, row->offsets[lane] == MM_LANE_INACTIVE
                                            ? json_null()
                                            : mm_json_count(mm_bank_of(row->offsets[lane], row->bank_bytes)));
    return mm_json_finish(list, failed);
}

static json_t *make_row(const struct row *row) {
    const struct mm_access *access = row->access;
    const bool has_stride = access->pattern == MM_PATTERN_STRIDE;
    json_t *object = json_pack("{s:s, s:s, s:o, s:o, s:b}", "memory", mm_memory_name(access->memory),
                               "pattern", mm_pattern_name(access->pattern), "stride",
                               has_stride ? mm_json_count(access->stride) : json_null(), "word_bytes",
                               mm_json_count(access->word_bytes), "padded", access->padded);
    int failed = json_object_update_new(
        object, access->memory == MM_MEMORY_SHARED
                    ? json_pack("{s:o, s:o, s:o}", "predicted_degree", mm_json_count(row->banks.degree),
                                "predicted_wavefronts", mm_json_count(row->banks.passes), "latency_cycles",
                                make_measured(row->time.latency_cycles))
                    : json_pack("{s:o, s:o, s:o}", "predicted_sectors", mm_json_count(row->sectors.sectors),
                                "predicted_bytes_used", mm_json_count(row->sectors.bytes_used),
                                "predicted_bytes_moved", mm_json_count(row->sectors.bytes_moved)));
    if (access->shift > 0)
        failed |= mm_json_put(object, "offset", mm_json_count(access->shift));
    failed |= mm_json_put(object, "cycles_per_access", make_measured(row->time.cycles));
    failed |= mm_json_put(object, "bytes_per_cycle", make_measured(bytes_per_cycle(row)));
    if (access->memory == MM_MEMORY_SHARED) {
        failed |= mm_json_put(object, "bank_bytes", mm_json_count(row->bank_bytes));
        failed |= mm_json_put(object, "banks", make_banks(row));
    }
    return mm_json_finish(object, failed);
}

static json_t *make_summary(const struct mm_memory_speed *speed) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "shared_latency_cycles",
                     make_measured(speed->shared_latency_cycles), "cache_latency_cycles",
                     make_measured(speed->cache_latency_cycles), "global_latency_cycles",
                     make_measured(speed->global_latency_cycles), "latency_ratio",
                     make_measured(speed->global_latency_cycles / speed->shared_latency_cycles),
                     "shared_gigabytes_per_second", make_measured(speed->shared_bytes_per_second / 1e9),
                     "global_gigabytes_per_second", make_measured(speed->global_bytes_per_second / 1e9),
                     "bandwidth_ratio",
                     make_measured(speed->shared_bytes_per_second / speed->global_bytes_per_second));
}

char *mm_access_json(const struct mm_probe *probe, size_t *length) {
    const struct mm_device *device = probe->device;
    json_t *rows = json_array();
    int failed = 0;
    for (size_t index = 0; index < probe->count && failed == 0; index++) {
        const struct row row = row_at(probe, index);
        json_t *object = make_row(&row);
        failed |= mm_json_put(object, "access", json_string(probe->writes ? "write" : "read"));
        failed |= mm_json_put(object, "measured", json_boolean(index < probe->done));
        failed |= json_array_append_new(rows, object);
    }
    json_t *report =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "op", "shared_access", "backend", device->backend->name,
                  "device", mm_json_text(device->name), "shared_bank_bytes",
                  device->shared_bank_bytes != 0 ? mm_json_count(device->shared_bank_bytes) : json_null(),
                  "rows", mm_json_finish(rows, failed), "summary", make_summary(&probe->speed));
    return mm_json_print(report, JSON_REAL_PRECISION(15), length);
}

static void write_figure(FILE *out, int width, double value) {
    if (is_known(value))
        fprintf(out, "%*.1f", width, value);
    else
        fprintf(out, "%*s", width, "-");
}

static void write_row(FILE *out, const struct row *row) {
    const struct mm_access *access = row->access;
    char stride[16] = "-";
    if (access->pattern == MM_PATTERN_STRIDE)
        snprintf(stride, sizeof stride, "%u", access->stride);
    fprintf(out, "%-10s %6s %5u", mm_pattern_name(access->pattern), stride, access->word_bytes);
    if (access->memory == MM_MEMORY_SHARED) {
        fprintf(out, " %6s %6u %10u", access->padded ? "yes" : "no", row->banks.degree, row->banks.passes);
        write_figure(out, 9, row->time.latency_cycles);
    } else {
        fprintf(out, " %7u %5u %6u", row->sectors.sectors, row->sectors.bytes_used, row->sectors.bytes_moved);
    }
    write_figure(out, 9, row->time.cycles);
    write_figure(out, 12, bytes_per_cycle(row));
    fputc('\n', out);
}

/* Writes the accesses to one kind of memory under a heading, or nothing if there are no such accesses. */
static void write_rows(FILE *out, const struct mm_probe *probe, enum mm_memory memory, const char *heading) {
    const char *before = heading;
    for (size_t index = 0; index < probe->count; index++) {
        const struct row row = row_at(probe, index);
        if (row.access->memory != memory)
            continue;
        fputs(before, out);
        before = "";
        write_row(out, &row);
    }
}

static void write_memory(FILE *out, const char *name, double latency_cycles, double bytes_per_second) {
    fprintf(out, "%-13s", name);
    write_figure(out, 9, latency_cycles);
    write_figure(out, 11, bytes_per_second / 1e9);
    fputc('\n', out);
}

static void write_summary(FILE *out, const struct mm_memory_speed *speed) {
    fputs("\nmemory         latency       GB/s\n", out);
    write_memory(out, "shared", speed->shared_latency_cycles, speed->shared_bytes_per_second);
    write_memory(out, "L2 cache", speed->cache_latency_cycles, 0);
    write_memory(out, "global", speed->global_latency_cycles, speed->global_bytes_per_second);
    fputs("shared is by", out);
    write_figure(out, 10, speed->global_latency_cycles / speed->shared_latency_cycles);
    write_figure(out, 11, speed->shared_bytes_per_second / speed->global_bytes_per_second);
    fputs(" times better\n", out);
}

char *mm_access_table(const struct mm_probe *probe, size_t *length) {
    const struct mm_device *device = probe->device;
    struct mm_text text;
    FILE *out = mm_text_open(&text);
    if (out == NULL)
        return NULL;
    char shift[32] = "";
    if (probe->accesses[0].shift > 0)
        snprintf(shift, sizeof shift, "; offset %u", probe->accesses[0].shift);
    fprintf(out, "%s (%s), banks of %u bytes%s; %s\n", device->name, device->backend->name,
            mm_probe_bank_bytes(probe), shift,
            probe->done > 0 ? "times in cycles"
            : probe->writes ? "writes, predicted, not measured"
                            : "predicted, not measured");
    write_rows(out, probe, MM_MEMORY_SHARED,
               "\nshared     stride bytes padded degree     passes  latency   access bytes/cycle\n");
    write_rows(out, probe, MM_MEMORY_GLOBAL,
               "\nglobal     stride bytes sectors  used  moved   access bytes/cycle\n");
    if (probe->done > 0)
        write_summary(out, &probe->speed);
    const size_t shared_count = mm_access_shared_count(probe);
    for (size_t index = 0; index < shared_count && shared_count <= MM_ACCESS_DRAWN_MAX; index++)
        mm_access_draw(out, probe, index);
    return mm_text_close(out, &text, length);
}
