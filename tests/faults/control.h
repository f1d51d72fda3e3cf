/* What a test and the library that it has put under a process tell each other: memory of a file that both
 * map, named by MATMULD_TEST_FAULTS. All is __atomic access only. */
#ifndef MM_TESTS_FAULTS_CONTROL_H
#define MM_TESTS_FAULTS_CONTROL_H

#include <stdint.h>

struct control {
    uint32_t armed; /* only while this is not 0 is anything counted, or does anything fail */
    uint64_t bytes; /* smaller ones are not counted */
    uint64_t first; /* of the allocations since, from 1, the first and the last that fail */
    uint64_t last;
    uint64_t seen;
    uint64_t failed;
};

#endif
