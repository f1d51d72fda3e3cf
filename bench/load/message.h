/* One request that is sent again and again: a product of random matrices in one of the forms that the
 * service takes, and what is known of the right result. It knows nothing of connections. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum mm_load_message_form { MM_LOAD_MESSAGE_RAW, MM_LOAD_MESSAGE_JSON, MM_LOAD_MESSAGE_MULTIPART };

/* Starts as {0}, filled in up to `authority`. Its bytes live as long as the process. */
struct mm_load_message {
    enum mm_load_message_form form;
    size_t m, k, n;
    const char *extra;     /* more of the query, as "variant=blas"; NULL: nothing */
    const char *authority; /* HOST:PORT */

    char *head; /* of HTTP, with the empty line */
    size_t head_bytes;
    char *body;
    size_t body_bytes;
};

/* The name of a form, as it is told to the program: raw, json, multipart. False: there is none of it. */
bool mm_load_message_form_find(const char *name, enum mm_load_message_form *form);

/* Writes head and body. Ends the process if memory runs out. */
void mm_load_message_make(struct mm_load_message *message);

/* Takes the bytes of a file for the head; there is no body beside them. Ends the process if it has none. */
void mm_load_message_read(struct mm_load_message *message, const char *path);

/* Where a header's value begins in the text of a reply's head; NULL where there is none. Case is ignored. */
const char *mm_load_header_in(const char *head, const char *name);

/* Whether a reply's body can be the product: its length, and some of its elements. What is wrong is said
 * in `problem`. */
bool mm_load_message_check(const struct mm_load_message *message, const char *body, size_t bytes,
                           char *problem, size_t problem_bytes);
