/* What the service says of itself as JSON: its variants, its devices, its health. */
#ifndef MM_API_DESCRIBE_H
#define MM_API_DESCRIBE_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bodies of GET /v1/variants and GET /v1/devices for the open devices (one backend's devices
 * stand together). malloc'ed, ended by NUL, the caller frees; NULL when memory is out. A row is
 * available where at least one of its backend's devices can run it; its attributes are read from the
 * first such device. Any thread. */
char *mm_describe_variants(struct mm_device *const *devices, size_t count, size_t *length);
char *mm_describe_devices(struct mm_device *const *devices, size_t count, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
