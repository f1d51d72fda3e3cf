/* What the service says of itself as JSON: its variants, its devices, its HTTP interface. */
#pragma once

#include "gpu/device/engine.h"

/* Each gives the body of a GET. malloc'ed, ended by NUL, the caller frees; NULL if memory runs out. Any
 * thread. */

/* /v1/variants: those of all backends that are known, first of those with devices. A variant is available if
 * one of its backend's devices can run it; its attributes are read from the first such device. What the
 * compiler reported of its kernels needs no device. */
char *mm_describe_variants(const struct mm_offer *offers, size_t count, size_t *length);

/* /v1/devices: those that are open. */
char *mm_describe_devices(struct mm_device *const *devices, size_t count, size_t *length);

/* /openapi.json: api/describe/openapi.json with the version and the names of this process filled in. */
char *mm_openapi_json(struct mm_device *const *devices, size_t count, const char *version, size_t *length);
