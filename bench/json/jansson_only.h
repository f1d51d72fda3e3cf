/* What a service that leaves all of JSON to Jansson would do with a request and its reply. */
#ifndef MM_TESTS_JSON_JANSSON_ONLY_H
#define MM_TESTS_JSON_JANSSON_ONLY_H

#include <stddef.h>

/* Gives Jansson the C library's memory, as it has without api/, which watches it. Before anything is read. */
void jansson_only_begin(void);

/* Reads the rows of the members "a" and "b", of edge × edge numbers each. Ends the process where they are not
 * that. */
void jansson_only_decode(const char *text, size_t bytes, size_t edge, float *a, float *b);

/* Writes {"c": rows} with nine digits a number, and returns the length; ends the process where the text's
 * room does not do. */
size_t jansson_only_encode(const float *c, size_t edge, char *text, size_t room);

#endif
