/* The test's side of struct control. */
#ifndef MM_TESTS_FAULTS_ARM_H
#define MM_TESTS_FAULTS_ARM_H

#include "tests/faults/control.h"

/* Maps the file, which is made where it is not there. NULL, with the reason on stderr, where that fails. It
 * stays mapped until the process ends. */
struct control *control_open(const char *path);

/* From now on the allocations first … last of those of at least so many bytes fail, counted from 1. */
void control_arm(struct control *control, uint64_t bytes, uint64_t first, uint64_t last);

/* Nothing fails any more. How many did is returned. */
uint64_t control_disarm(struct control *control);

/* How many allocations there were while it was armed last. */
uint64_t control_seen(const struct control *control);

#endif
