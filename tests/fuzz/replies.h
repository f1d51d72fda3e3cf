/* What came back over a connection: each reply is well-formed HTTP with a status of the contract's, a refusal
 * is a problem that says why, JSON is JSON. */
#pragma once

#include "tests/fuzz/fuzz.h"

/* Checks what is promised of all replies. What was sent tells which statuses and bodies there may be. */
void replies_check(struct piece sent, struct piece came);
