/* Checks that replies are well-formed HTTP, have documented statuses, and contain valid JSON. Errors must be
 * problem documents. */
#pragma once

#include "tests/fuzz/fuzz.h"

/* Checks the replies in `came` to the requests in `sent`. Aborts if a check fails. */
void replies_check(struct slice sent, struct slice came);
