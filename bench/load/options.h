/* The command lines of the clients here, a row for each option. It knows nothing of what they are for. */
#ifndef MM_LOAD_OPTIONS_H
#define MM_LOAD_OPTIONS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

enum { MM_LOAD_EXIT_USAGE = 2 };

/* What an option takes, and what `value` points to. */
enum mm_load_option_kind {
    MM_LOAD_TEXT,    /* const char * */
    MM_LOAD_COUNT,   /* size_t, from min to max */
    MM_LOAD_SECONDS, /* double, from min to max */
    MM_LOAD_SHAPE,   /* struct mm_load_message, of which m, k and n are set from MxKxN */
    MM_LOAD_FORM,    /* enum mm_load_message_form */
    MM_LOAD_YES      /* bool, set by the option alone */
};

struct mm_load_option {
    const char *name;
    enum mm_load_option_kind kind;
    void *value;
    size_t min, max;
};

/* Reads the arguments by rows, the last of which has no name. If they are wrong, or *port is still NULL, it
 * shows the usage and ends the process with MM_LOAD_EXIT_USAGE. */
void mm_load_options_read(const struct mm_load_option *rows, const char *const *port, const char *usage,
                          int argc, char **argv);

/* The first address of a host's port, for the caller to free; ends the process if there is none. */
struct addrinfo *mm_load_resolve(const char *host, const char *port);

#endif
