/* Describes the service as JSON: variants, devices, HTTP interface. Any thread may call these functions. Each
 * returns the body of a GET: malloc'ed text, which the caller frees, or NULL if memory runs out. *length does
 * not count the NUL at the end. */
#pragma once

#include "gpu/device/engine.h"

/* Writes /v1/variants: the variants of all known backends. Backends with devices come first. A variant is
 * available if a device of its backend can run it. The first such device provides the attributes of the
 * variant's kernels. The compiler's figures about kernels are shown even without a device. */
char *mm_describe_variants(const struct mm_offer *offers, size_t count, size_t *length);

/* Writes /v1/devices. Lists only open devices. */
char *mm_describe_devices(struct mm_device *const *devices, size_t count, size_t *length);

/* Writes /openapi.json: the text of api/describe/openapi.json, completed with this process's version,
 * backends, variants and element types. */
char *mm_openapi_json(struct mm_device *const *devices, size_t count, const char *version, size_t *length);
