/* Variables that begin with MATMULD_ and are no option. Knows the names of options, and no values. */
#ifndef MM_SERVER_ENVIRONMENT_H
#define MM_SERVER_ENVIRONMENT_H

#include <stdbool.h>

/* Whether Kubernetes sets such a value as the port of a Service: tcp://10.96.3.7:8080. Any thread. */
bool mm_environment_is_link(const char *value);

/* Logs a warning for each MATMULD_… variable that is ignored: misspelt ones with the nearest option, and
 * MATMULD_PORT if Kubernetes has set it. Other variables of a Service are passed over. From main, before
 * other threads. */
void mm_environment_warn(void);

#endif
