/* Checks UTF-8 (Unicode's table 3-7), and writes JSON strings. Any thread may call these functions. */
#pragma once

#include "api/number/digits.h"

#include <stddef.h>

/* Returns the length of the UTF-8 sequence at `text`; 0 if it is malformed. The bounds of the second byte
 * exclude overlong forms, surrogates, and code points above U+10FFFF. `text` must be before `end`. */
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

/* Writes a text as a JSON string, without a NUL. Returns the end of the string. Each byte of the text needs
 * up to six bytes at `end`. A byte that is not UTF-8 becomes U+FFFD. */
static inline char *mm_put_json_string(char *end, const char *text) {
    *end++ = '"';
    for (const char *text_end = text + strlen(text); text < text_end;) {
        const size_t bytes = mm_utf8_bytes(text, text_end);
        const unsigned char first = (unsigned char)*text;
        if (bytes == 0)
            end = mm_put_text(end, "\xEF\xBF\xBD");
        else if (first < ' ')
            end = mm_put_hex(mm_put_text(end, "\\u"), first, 4);
        else
            end = (char *)memcpy(mm_put_text(end, first == '"' || first == '\\' ? "\\" : ""), text, bytes) +
                  bytes;
        text += bytes > 0 ? bytes : 1;
    }
    *end++ = '"';
    return end;
}
