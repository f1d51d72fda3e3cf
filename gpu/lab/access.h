/* Access patterns of a warp, and a model of their cost. Shared memory has 32 banks, and a bank serves one
 * word at a time. Global memory is transferred in sectors of 32 bytes. The model uses only the 32 addresses
 * of a warp. A backend's `probe` measures the real cost.
 *
 * Sources, by NVIDIA:
 * - Shared memory: CUDA C++ Programming Guide, compute capabilities, "Shared Memory".
 * - Accesses of 64 bits by half-warps: edition 4.0 of that guide, F.4.3.2.
 * - Banks of 8 bytes (compute capability 3.x): editions of that guide up to CUDA 12.
 * - Sectors: Best Practices Guide, "Coalesced Access to Global Memory".
 *
 * Any thread may call these functions. They cannot fail, and take no NULL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"

__BEGIN_DECLS

enum { MM_WARP_LANES = 32, MM_BANK_COUNT = 32, MM_SECTOR_BYTES = 32, MM_STRIDE_MAX = 32, MM_SHIFT_MAX = 31 };

/* The largest word index of MM_PATTERN_OFFSETS, which allows a tile of 32 rows of 64 words. */
enum { MM_OFFSET_MAX = 2047 };

/* The most bytes of shared memory that an access can span: words of 8 bytes with padding. */
enum { MM_ACCESS_BYTES_MAX = (MM_OFFSET_MAX + MM_OFFSET_MAX / MM_BANK_COUNT + 1) * 8 };

/* A lane with this word or offset accesses nothing. */
#define MM_LANE_INACTIVE UINT32_MAX

/* One row for each memory: constant, name in the API. */
#define MM_MEMORY_TABLE(X)                                                                                   \
    X(MM_MEMORY_SHARED, "shared")                                                                            \
    X(MM_MEMORY_GLOBAL, "global")

enum mm_memory { MM_MEMORY_TABLE(MM_CONSTANT) MM_MEMORY_COUNT };

/* One row for each pattern: constant, name in the API. */
#define MM_PATTERN_TABLE(X)                                                                                  \
    X(MM_PATTERN_LINEAR, "linear")       /* lane i reads word i */                                           \
    X(MM_PATTERN_PERMUTED, "permuted")   /* words as for linear, shuffled within each half-warp */           \
    X(MM_PATTERN_STRIDE, "stride")       /* lane i reads word stride*i */                                    \
    X(MM_PATTERN_SAME_BANK, "same_bank") /* lane i reads word 32*i */                                        \
    X(MM_PATTERN_BROADCAST, "broadcast") /* every lane reads word 0 */                                       \
    X(MM_PATTERN_OFFSETS, "offsets")     /* each lane reads any word, or none */

enum mm_pattern { MM_PATTERN_TABLE(MM_CONSTANT) MM_PATTERN_COUNT };

const char *mm_memory_name(enum mm_memory memory);
const char *mm_pattern_name(enum mm_pattern pattern);

/* A read or write by a whole warp. */
struct mm_access {
    enum mm_memory memory;
    enum mm_pattern pattern;
    /* For MM_PATTERN_STRIDE, words from one lane to the next: 1 to MM_STRIDE_MAX. Otherwise 0. */
    unsigned stride;
    unsigned word_bytes; /* bytes that each lane accesses: 4 or 8 */
    bool padded;         /* one word is unused after every 32 words */
    /* The word of each lane: at most MM_OFFSET_MAX, or MM_LANE_INACTIVE. Only for MM_PATTERN_OFFSETS, which
     * is only for shared memory. */
    uint32_t words[MM_WARP_LANES];
    /* Words by which all lanes are shifted before padding: 0 to MM_SHIFT_MAX. 0 for MM_PATTERN_OFFSETS. */
    unsigned shift;
};

/* Computes the byte offset of each lane's word, with padding. Lanes that access nothing get
 * MM_LANE_INACTIVE. */
void mm_access_offsets(const struct mm_access *access, uint32_t offsets[MM_WARP_LANES]);

/* The cost of an access to shared memory. A transaction moves at most the width of all banks. With banks of 4
 * bytes, 8 bytes for each lane need two transactions of 16 lanes, and 16 bytes need four transactions of 8
 * lanes. Within a transaction, a bank accesses one word after another. If several lanes need the same word,
 * the bank accesses the word only once.
 *
 * Counters of an H200 show an exception. With 16 bytes for each lane, two transactions become one if each
 * lane accesses the same words as a neighbour. The neighbour must be lane i^1 for every lane i, or lane i^2
 * for every lane i. */
struct mm_bank_cost {
    unsigned degree; /* most words that one bank serves in one transaction; 1: no conflict */
    unsigned passes; /* sum of the degrees of all transactions */
    unsigned transactions;
    /* Bit i is set if lane i accesses a bank that serves several words in one transaction. */
    uint32_t conflicts;
};

static inline unsigned mm_bank_of(uint32_t offset, unsigned bank_bytes) {
    return offset / bank_bytes % MM_BANK_COUNT;
}

/* Returns the cost of accessing word_bytes (1 to 16) at each offset, in 32 banks of bank_bytes (4 or 8).
 * Offsets are multiples of word_bytes, or MM_LANE_INACTIVE. Current chips may be faster if neighbouring
 * lanes access the same 8 bytes. Chips of compute capability 3.x had exceptions too. */
struct mm_bank_cost mm_banks_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes,
                                     unsigned bank_bytes);

/* The cost of an access to global memory, which moves whole sectors. */
struct mm_sector_cost {
    unsigned sectors;     /* sectors with a byte of the access */
    unsigned bytes_used;  /* bytes that lanes access; bytes that several lanes access count once */
    unsigned bytes_moved; /* bytes of all accessed sectors */
};

/* Returns the cost of accessing word_bytes (1 to 32) at each offset. Offset 0 is the beginning of a sector.
 * Offsets are multiples of word_bytes, or MM_LANE_INACTIVE. */
struct mm_sector_cost mm_sectors_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes);

/* The time of an access in cycles of the multiprocessors' clock; 0: not measured. */
struct mm_access_time {
    double latency_cycles; /* if each read depends on the previous read */
    double cycles;         /* if reads are independent */
};

struct mm_memory_speed {
    double shared_latency_cycles;   /* shared memory, pattern linear, words of 4 bytes */
    double cache_latency_cycles;    /* global memory in the L2 cache */
    double global_latency_cycles;   /* global memory outside the L2 cache */
    double shared_bytes_per_second; /* all multiprocessors together, pattern linear */
    double global_bytes_per_second; /* all multiprocessors together, outside the L2 cache */
};

__END_DECLS
