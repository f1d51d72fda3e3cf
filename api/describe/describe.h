/* The service's description of itself as JSON: its variants, its devices, its HTTP interface. */
#pragma once

#include "gpu/device/engine.h"

/* Each function returns the body of a GET: malloc'ed text, which ends by NUL and which the caller frees, or
 * NULL if memory runs out. Any thread may call these functions. */

/* /v1/variants lists the variants of all known backends; backends with devices come first. A variant is
 * available if a device of its backend can run it. Its attributes come from the first such device. The
 * compiler's figures of its kernels need no device. */
char *mm_describe_variants(const struct mm_offer *offers, size_t count, size_t *length);

/* /v1/devices lists the open devices. */
char *mm_describe_devices(struct mm_device *const *devices, size_t count, size_t *length);

/* /openapi.json: api/describe/openapi.json with the version and the names of this process filled in. */
char *mm_openapi_json(struct mm_device *const *devices, size_t count, const char *version, size_t *length);
