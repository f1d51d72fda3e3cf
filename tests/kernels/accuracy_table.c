/* How exact the variants are, as Markdown for people and as CSV for programs. It measures nothing. */
#include "tests/kernels/accuracy.h"

#include <math.h>

void accuracy_table_legend(FILE *out) {
    fputs("- every element of C counts, against sums in float64; u is 2^-24\n"
          "- error: ‖C−R‖/‖R‖, of whole matrices (Frobenius); `not finite` and `near 0` stand where it says "
          "nothing\n"
          "- element error: the largest |C−R|/(|A|·|B|) in u, of the elements whose |A|·|B| is in float32's "
          "range and no less than k·2^-126: below, underflow alone may cost u\n"
          "- of the bound: the largest |C−R| over 2(k+8)·u·(|A|·|B|) + k·2^-149, of all elements\n"
          "- within: no element is past that bound, and the error is no more than 1.5 times naive's, or "
          "2.5e-7 where that is more (not asked of fewer than 256 elements)\n",
          out);
}

void accuracy_table_head(FILE *out, struct shape shape) {
    fprintf(out,
            "\n## A %zu×%zu · B %zu×%zu\n\n"
            "| data | variant | error | blas | naive | element error, u | blas | naive | of the bound | "
            "within |\n"
            "|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
            shape.m, shape.k, shape.k, shape.n);
}

/* "auto (blas)" where the row left it open. */
static void print_name(FILE *out, const struct accuracy_row *row) {
    fputs(row->subject->name, out);
    if (row->ran != row->subject->variant)
        fprintf(out, " (%s)", row->ran->name);
}

static void print_norm(FILE *out, const struct accuracy_row *row) {
    const double norm = accuracy_norm(row);
    fputs(" | ", out);
    if (norm >= 0.0)
        fprintf(out, "%.2e", norm);
    else if (row->error.status == MM_OK)
        fputs(isfinite(row->exactness.difference_squares) ? "near 0" : "not finite", out);
}

static void print_number(FILE *out, const char *between, double value, bool there) {
    fputs(between, out);
    if (there)
        fprintf(out, "%.3g", value);
}

static void print_units(FILE *out, const struct accuracy_row *row) {
    print_number(out, " | ", row->exactness.unit_max, row->error.status == MM_OK);
}

/* What is outside, where something is. */
static void print_verdict(FILE *out, const struct accuracy_row *row, const struct accuracy_set *set) {
    const double allowed = accuracy_norm_allowed(set);
    if (row->error.status != MM_OK) {
        fprintf(out, " | %s: %s |\n", mm_status_name(row->error.status), row->error.detail);
        return;
    }
    fputs(accuracy_is_within(row, set) ? " | yes" : " | **no**:", out);
    if (row->exactness.wrong > 0)
        fprintf(out, " %zu of %zu elements", row->exactness.wrong, set->shape.m * set->shape.n);
    if (allowed >= 0.0 && accuracy_norm(row) > allowed)
        fprintf(out, "%s error over %.2e, by a norm that rests on %.1f elements",
                row->exactness.wrong > 0 ? "," : "", allowed, set->norm_elements);
    fputs(" |\n", out);
}

void accuracy_table_row(FILE *out, const struct accuracy_row *row, const struct accuracy_set *set) {
    fprintf(out, "| %s | ", set->family->name);
    print_name(out, row);
    print_norm(out, row);
    print_norm(out, &set->blas);
    print_norm(out, &set->naive);
    print_units(out, row);
    print_units(out, &set->blas);
    print_units(out, &set->naive);
    print_number(out, " | ", row->exactness.fraction_max, row->error.status == MM_OK);
    print_verdict(out, row, set);
}

void accuracy_csv_head(FILE *out) {
    fputs(
        "data,m,k,n,seed,backend,variant,ran,status,relative_error,blas_relative_error,naive_relative_error,"
        "relative_error_allowed,norm_elements,element_error_u,blas_element_error_u,naive_element_error_u,of_"
        "bound,"
        "elements,elements_wrong,within,device\n",
        out);
}

void accuracy_csv_row(FILE *out, const struct accuracy_row *row, const struct accuracy_set *set) {
    const struct accuracy_row *const rows[] = {row, &set->blas, &set->naive};
    const struct shape shape = set->shape;
    const double allowed = accuracy_norm_allowed(set);
    const bool ran = row->error.status == MM_OK;
    fprintf(out, "%s,%zu,%zu,%zu,%llu,%s,%s,%s,%s", set->family->key, shape.m, shape.k, shape.n,
            (unsigned long long)set->seed, row->subject->device->backend->name, row->subject->name,
            row->ran->name, mm_status_name(row->error.status));
    for (size_t which = 0; which < 3; which++)
        print_number(out, ",", accuracy_norm(rows[which]), accuracy_norm(rows[which]) >= 0.0);
    print_number(out, ",", allowed, allowed >= 0.0);
    print_number(out, ",", set->norm_elements, set->norm_elements > 0.0);
    for (size_t which = 0; which < 3; which++)
        print_number(out, ",", rows[which]->exactness.unit_max, rows[which]->error.status == MM_OK);
    print_number(out, ",", row->exactness.fraction_max, ran);
    fprintf(out, ",%zu,", shape.m * shape.n);
    if (ran)
        fprintf(out, "%zu", row->exactness.wrong);
    fprintf(out, ",%s,", !ran ? "" : accuracy_is_within(row, set) ? "yes" : "no");
    table_text(out, row->subject->device->name);
    fputc('\n', out);
}
