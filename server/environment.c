/* Warns of environment variables that look like options but are ignored, such as misspelt names. */
#include "server/options.h"

#include "gpu/matrix/matrix.h"
#include "server/observe/log.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

static const char prefix[] = "MATMULD_";

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

bool mm_environment_is_link(const char *value) {
    return begins(value, "tcp://") || begins(value, "udp://") || begins(value, "sctp://");
}

/* Recognises variables that Kubernetes sets for a Service named matmuld or matmuld-something. Examples are
 * MATMULD_SERVICE_HOST, MATMULD_PORT_8080_TCP_ADDR and MATMULD_SOMETHING_PORT. */
static bool is_of_service(const char *name, const char *value) {
    const char *port = strstr(name, "_PORT_");
    return mm_environment_is_link(value) || strstr(name, "_SERVICE_HOST") != NULL ||
           strstr(name, "_SERVICE_PORT") != NULL ||
           (port != NULL && isdigit((unsigned char)port[strlen("_PORT_")]));
}

/* Returns the Levenshtein distance: how many letters must be added, removed or changed to get `to`. */
static size_t distance(const char *from, const char *to) {
    size_t row[MM_OPTION_VARIABLE_MAX]; /* row[i]: distance of the letters so far from to[0..i-1] */
    const size_t length = strlen(to);
    for (size_t index = 0; index <= length; index++)
        row[index] = index;
    for (const char *letter = from; *letter != '\0'; letter++) {
        size_t before = row[0]++; /* distance between the texts before the current letters */
        for (size_t index = 1; index <= length; index++) {
            const size_t changed = before + (*letter != to[index - 1]);
            before = row[index];
            row[index] = mm_size_min(changed, mm_size_min(before, row[index - 1]) + 1);
        }
    }
    return row[length];
}

static size_t find_nearest(const char *name, char nearest[MM_OPTION_VARIABLE_MAX]) {
    size_t found = SIZE_MAX;
    char variable[MM_OPTION_VARIABLE_MAX];
    for (size_t index = 0; mm_options_variable(index, variable); index++) {
        const size_t off = distance(name, variable);
        if (off >= found)
            continue;
        found = off;
        memcpy(nearest, variable, MM_OPTION_VARIABLE_MAX);
    }
    return found;
}

static void check(const char *variable) {
    char name[2 * MM_OPTION_VARIABLE_MAX];
    char nearest[MM_OPTION_VARIABLE_MAX];
    const char *equals = strchr(variable, '=');
    if (equals == NULL || !begins(variable, prefix))
        return;
    snprintf(name, sizeof name, "%.*s", (int)(equals - variable), variable); /* cuts off a longer name */
    const char *value = equals + 1;
    if (strcmp(name, "MATMULD_PORT") == 0 && mm_environment_is_link(value))
        mm_log_warning("MATMULD_PORT is '%.100s', which Kubernetes sets for a Service named matmuld, and is "
                       "ignored: set enableServiceLinks: false in the pod's spec",
                       value);
    else if (!is_of_service(name, value) && find_nearest(name, nearest) > 0)
        mm_log_warning("%s is no option and is ignored; the nearest is %s", name, nearest);
}

void mm_environment_warn(void) {
    for (char *const *variable = environ; *variable != NULL; variable++)
        check(*variable);
}
