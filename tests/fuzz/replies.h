/* Checks the service's replies: each is well-formed HTTP with a documented status, an error is a problem
 * document, and JSON is valid. */
#pragma once

#include "tests/fuzz/fuzz.h"

/* Checks all replies to the requests in `sent`; a broken rule ends the process by abort(). */
void replies_check(struct slice sent, struct slice came);
