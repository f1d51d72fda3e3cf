/* The header traceparent (W3C Trace Context, https://www.w3.org/TR/trace-context/#traceparent-header), by
 * which a client names the trace that its request belongs to. */
#pragma once

#include "api/slice.h"

enum { MM_TRACEPARENT_CHARS = 55, MM_TRACE_ID_AT = 3, MM_TRACE_ID_CHARS = 32 };

/* Copies the members that version 00 defines, with a NUL. Leaves out members that a later version adds.
 * Returns false and leaves `copy` untouched if the value is invalid, so the header must be ignored. Any
 * thread may call it. */
bool mm_traceparent_read(struct mm_slice value, char copy[MM_TRACEPARENT_CHARS + 1]);
