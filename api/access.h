/* The benchmark `shared_access` on the wire: which accesses a request asks for, and what a probe of them
 * found, as JSON and as a table for a terminal. For the files of api/ alone: it shows Jansson. */
#ifndef MM_API_ACCESS_H
#define MM_API_ACCESS_H

#include "gpu/probe.h"

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the members `patterns`, `strides`, `word_bytes` and `padded` of a request, each a value or a list of
 * different ones, and all there are where it is absent; `op` and `timeout_ms` are passed over.
 * probe->accesses become every combination in shared memory, by word, padding, pattern and stride, and behind
 * them, where `stride` is among the patterns, each word and stride in global memory; all else of the probe
 * becomes zeros. MM_BAD_REQUEST names the member: unknown, of another form, an empty list, a value twice, or
 * strides without the pattern; the probe is untouched then. */
enum mm_status mm_access_read(json_t *request, struct mm_probe *probe, struct mm_error *error);

/* What a probe that is over found on the device: op, backend, device, shared_bank_bytes, rows and
 * summary. A new reference; NULL when memory is out. */
json_t *mm_access_report(const struct mm_probe *probe, const struct mm_device *device);

/* The same as tables of aligned columns. malloc'ed, ended by NUL, the caller frees; NULL when memory is out.
 */
char *mm_access_table(const struct mm_probe *probe, const struct mm_device *device, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
