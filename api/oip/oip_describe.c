/* Describes models as the protocol and Triton's extensions do. */
#include "api/oip/oip.h"

#include <inttypes.h>

/* Writes {"name":"MODEL". */
static void begin_model(FILE *out, const struct mm_oip_model *model) {
    char name[MM_OIP_MODEL_MAX];
    *mm_oip_put_model(name, model) = '\0';
    fprintf(out, "{\"name\":\"%s\"", name);
}

/* Writes a list of tensors whose members are `before`, the datatype, and `behind`. */
static void put_tensors(FILE *out, const char *key, const char *names, enum mm_dtype dtype,
                        const char *before, const char *behind) {
    fprintf(out, ",\"%s\":[", key);
    for (const char *name = names; *name != '\0'; name++)
        fprintf(out, "%s{\"name\":\"%c\",%s%s%s}", name > names ? "," : "", *name, before,
                mm_oip_datatype(dtype), behind);
    fputc(']', out);
}

void mm_oip_put_metadata(FILE *out, const struct mm_oip_model *model) {
    static const char before[] = "\"datatype\":\"", behind[] = "\",\"shape\":[-1,-1]";
    begin_model(out, model);
    fputs(",\"versions\":[\"" MM_OIP_VERSION "\"],\"platform\":\"matmuld\"", out);
    put_tensors(out, "inputs", "AB", model->dtype, before, behind);
    put_tensors(out, "outputs", "C", mm_dtype_result(model->dtype), before, behind);
    fputc('}', out);
}

void mm_oip_put_config(FILE *out, const struct mm_oip_model *model) {
    static const char before[] = "\"data_type\":\"TYPE_", behind[] = "\",\"dims\":[-1,-1]";
    begin_model(out, model);
    fputs(",\"platform\":\"matmuld\",\"backend\":\"matmuld\",\"max_batch_size\":0", out);
    put_tensors(out, "input", "AB", model->dtype, before, behind);
    put_tensors(out, "output", "C", mm_dtype_result(model->dtype), before, behind);
    fputc('}', out);
}

void mm_oip_put_index(FILE *out, const struct mm_oip_model *model) {
    begin_model(out, model);
    fputs(",\"version\":\"" MM_OIP_VERSION "\",\"state\":\"READY\",\"reason\":\"\"}", out);
}

static void put_duration(FILE *out, const char *name, const uint64_t *count, const uint64_t *ns) {
    fprintf(out, "\"%s\":{\"count\":%" PRIu64 ",\"ns\":%" PRIu64 "}", name,
            count == NULL ? 0 : __atomic_load_n(count, __ATOMIC_RELAXED),
            ns == NULL ? 0 : __atomic_load_n(ns, __ATOMIC_RELAXED));
}

void mm_oip_put_stats(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats) {
    const struct {
        const char *name;
        const uint64_t *count, *ns;
    } durations[] = {{"success", &stats->success, &stats->success_ns},
                     {"fail", &stats->fail, &stats->fail_ns},
                     {"queue", &stats->success, &stats->queue_ns},
                     {"compute_input", &stats->success, &stats->upload_ns},
                     {"compute_infer", &stats->success, &stats->kernel_ns},
                     {"compute_output", &stats->success, &stats->download_ns},
                     {"cache_hit", NULL, NULL},
                     {"cache_miss", NULL, NULL}};
    begin_model(out, model);
    fprintf(out,
            ",\"version\":\"" MM_OIP_VERSION "\",\"inference_count\":%" PRIu64 ",\"execution_count\":%" PRIu64
            ",\"inference_stats\":{",
            __atomic_load_n(&stats->success, __ATOMIC_RELAXED),
            (__atomic_load_n(&stats->launch_millionths, __ATOMIC_RELAXED) + 500000) / 1000000);
    for (size_t index = 0; index < sizeof durations / sizeof durations[0]; index++) {
        if (index > 0)
            fputc(',', out);
        put_duration(out, durations[index].name, durations[index].count, durations[index].ns);
    }
    fputs("}}", out);
}
