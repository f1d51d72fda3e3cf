/* Describes models as the protocol and Triton's extensions do. */
#include "api/oip/oip.h"

#include <inttypes.h>

void mm_oip_put_name(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats) {
    char name[MM_OIP_MODEL_MAX];
    *mm_oip_put_model(name, model) = '\0';
    fprintf(out, "\"%s\"", name);
}

/* Begins an object with a model's name, and writes more of it. */
static void put_named(FILE *out, const struct mm_oip_model *model, const char *more) {
    fputs("{\"name\":", out);
    mm_oip_put_name(out, model, NULL);
    fputs(more, out);
}

/* Writes the members for inputs and outputs, by the names that the metadata or the configuration uses. */
static void put_tensors(FILE *out, const struct mm_oip_model *model, const char *plural, const char *type,
                        const char *shape) {
    const char *operand = mm_oip_datatype(model->dtype),
               *result = mm_oip_datatype(mm_dtype_result(model->dtype));
    fprintf(out,
            ",\"input%s\":[{\"name\":\"A\",%s%s\",\"%s\":[-1,-1]},{\"name\":\"B\",%s%s\",\"%s\":[-1,-1]}],"
            "\"output%s\":[{\"name\":\"C\",%s%s\",\"%s\":[-1,-1]}]}",
            plural, type, operand, shape, type, operand, shape, plural, type, result, shape);
}

void mm_oip_put_metadata(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats) {
    put_named(out, model, ",\"versions\":[\"" MM_OIP_VERSION "\"],\"platform\":\"matmuld\"");
    put_tensors(out, model, "s", "\"datatype\":\"", "shape");
}

void mm_oip_put_config(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats) {
    put_named(out, model, ",\"platform\":\"matmuld\",\"backend\":\"matmuld\",\"max_batch_size\":0");
    put_tensors(out, model, "", "\"data_type\":\"TYPE_", "dims");
}

void mm_oip_put_index(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats) {
    put_named(out, model, ",\"version\":\"" MM_OIP_VERSION "\",\"state\":\"READY\",\"reason\":\"\"}");
}

void mm_oip_put_stats(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats) {
    static const uint64_t never = 0;
    const struct {
        const char *name;
        const uint64_t *count, *ns;
    } durations[] = {{"success", &stats->success, &stats->success_ns},
                     {"fail", &stats->fail, &stats->fail_ns},
                     {"queue", &stats->success, &stats->queue_ns},
                     {"compute_input", &stats->success, &stats->upload_ns},
                     {"compute_infer", &stats->success, &stats->kernel_ns},
                     {"compute_output", &stats->success, &stats->download_ns},
                     {"cache_hit", &never, &never},
                     {"cache_miss", &never, &never}};
    put_named(out, model, ",\"version\":\"" MM_OIP_VERSION "\"");
    fprintf(out, ",\"inference_count\":%" PRIu64 ",\"execution_count\":%" PRIu64 ",\"inference_stats\":",
            __atomic_load_n(&stats->success, __ATOMIC_RELAXED),
            (__atomic_load_n(&stats->launch_millionths, __ATOMIC_RELAXED) + 500000) / 1000000);
    for (size_t index = 0; index < sizeof durations / sizeof durations[0]; index++)
        fprintf(out, "%c\"%s\":{\"count\":%" PRIu64 ",\"ns\":%" PRIu64 "}", index == 0 ? '{' : ',',
                durations[index].name, __atomic_load_n(durations[index].count, __ATOMIC_RELAXED),
                __atomic_load_n(durations[index].ns, __ATOMIC_RELAXED));
    fputs("}}", out);
}
