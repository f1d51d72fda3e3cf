/* UTF-8's well-formed sequences (the Unicode standard, table 3-7). Any thread may call these functions. */
#pragma once

#include <stddef.h>

/* Bytes of the well-formed sequence at `text`, which is before `end`; 0 if there is none. The bounds of the
 * second byte keep out overlong forms, surrogates and what lies beyond U+10FFFF. */
static inline size_t mm_utf8_bytes(const char *text, const char *end) {
    const unsigned char *byte = (const unsigned char *)text;
    const unsigned char first = byte[0];
    if (first < 0x80)
        return 1;
    const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4 || (size_t)(end - text) < bytes)
        return 0;
    const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte[1] < low || byte[1] > high)
        return 0;
    for (size_t index = 2; index < bytes; index++)
        if ((byte[index] & 0xC0) != 0x80)
            return 0;
    return bytes;
}
