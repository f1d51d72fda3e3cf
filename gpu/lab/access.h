/* Accesses to memory by a warp: patterns, and a model of their cost. Shared memory has 32 banks, and a
 * bank serves one word at a time. Global memory is transferred in sectors of 32 bytes. The model computes
 * only with the 32 addresses of a warp. A backend's `probe` measures what a device needs.
 *
 * Sources. NVIDIA's CUDA C++ Programming Guide, compute capabilities, "Shared Memory": 32 banks,
 * successive words in successive banks, no conflict between lanes that access one word. Its edition 4.0,
 * F.4.3.2: half-warps serve accesses of 64 bits, and lanes conflict only within a half-warp. Its editions
 * up to CUDA 12 on compute capability 3.x: banks of 8 bytes. The Best Practices Guide, "Coalesced Access
 * to Global Memory": sectors.
 *
 * The functions keep no state, so any thread may call them. They cannot fail, and take no NULL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"

__BEGIN_DECLS

enum { MM_WARP_LANES = 32, MM_BANK_COUNT = 32, MM_SECTOR_BYTES = 32, MM_STRIDE_MAX = 32, MM_SHIFT_MAX = 31 };

/* The last word that MM_PATTERN_OFFSETS can name: the last of a tile of 32 rows of 64 words. */
enum { MM_OFFSET_MAX = 2047 };

/* The most shared memory that an access can span: all words up to MM_OFFSET_MAX with padding, of 8 bytes
 * each. */
enum { MM_ACCESS_BYTES_MAX = (MM_OFFSET_MAX + MM_OFFSET_MAX / MM_BANK_COUNT + 1) * 8 };

/* Replaces the word or byte of a lane that accesses nothing. */
#define MM_LANE_INACTIVE UINT32_MAX

/* One row for each memory: constant, name in the API. */
#define MM_MEMORY_TABLE(X)                                                                                   \
    X(MM_MEMORY_SHARED, "shared")                                                                            \
    X(MM_MEMORY_GLOBAL, "global")

enum mm_memory { MM_MEMORY_TABLE(MM_CONSTANT) MM_MEMORY_COUNT };

/* One row for each pattern: constant, name in the API. */
#define MM_PATTERN_TABLE(X)                                                                                  \
    X(MM_PATTERN_LINEAR, "linear")       /* lane i reads word i */                                           \
    X(MM_PATTERN_PERMUTED, "permuted")   /* the words of linear, shuffled within each half of the warp */    \
    X(MM_PATTERN_STRIDE, "stride")       /* lane i reads word s*i */                                         \
    X(MM_PATTERN_SAME_BANK, "same_bank") /* lane i reads word 32*i */                                        \
    X(MM_PATTERN_BROADCAST, "broadcast") /* every lane reads word 0 */                                       \
    X(MM_PATTERN_OFFSETS, "offsets")     /* each lane reads a word of its own choice, or none */

enum mm_pattern { MM_PATTERN_TABLE(MM_CONSTANT) MM_PATTERN_COUNT };

/* Return the name in the API, a static string. */
const char *mm_memory_name(enum mm_memory memory);
const char *mm_pattern_name(enum mm_pattern pattern);

/* One read or write by a whole warp. */
struct mm_access {
    enum mm_memory memory;
    enum mm_pattern pattern;
    unsigned stride; /* for MM_PATTERN_STRIDE: words from one lane to the next, 1 to MM_STRIDE_MAX; else 0 */
    unsigned word_bytes;           /* bytes that each lane accesses: 4 or 8 */
    bool padded;                   /* one word is unused after every 32 words, as in rows of 33 */
    uint32_t words[MM_WARP_LANES]; /* for MM_PATTERN_OFFSETS, in shared memory: each up to MM_OFFSET_MAX, or
                                      MM_LANE_INACTIVE */
    unsigned shift;                /* words added to each lane's word before padding, 0 to MM_SHIFT_MAX; 0 for
                                      MM_PATTERN_OFFSETS */
};

/* Computes the byte offset of each lane's word, with padding; MM_LANE_INACTIVE if the lane accesses
 * nothing. Word 0 is at offset 0. */
void mm_access_offsets(const struct mm_access *access, uint32_t offsets[MM_WARP_LANES]);

/* The cost of an access to shared memory. A transaction moves at most the width of all banks. With banks
 * of 4 bytes, an access of 8 bytes a lane needs two transactions of 16 lanes. An access of 16 bytes a lane
 * needs four transactions of 8 lanes. Within a transaction, a bank serves its words one after another, and
 * each word serves all lanes that access it.
 *
 * For 16 bytes a lane, two transactions can become one, as counters of an H200 show. Each of their lanes
 * must then have the words of a neighbour: of lane i^1 everywhere, or of lane i^2 everywhere. A read needs
 * 4 passes if all quads are different (B in `vectorized`), and 2 if they come in pairs (A in `vectorized`
 * and `warp_tiled`). */
struct mm_bank_cost {
    unsigned degree; /* the most words that one bank serves in one transaction; 1: no conflict */
    unsigned passes; /* sum of the degrees of all transactions */
    unsigned transactions;
    uint32_t conflicts; /* bit i: in the transaction of lane i, one of its banks also serves another word */
};

/* Returns the bank of the byte at an offset, counted from 0. */
static inline unsigned mm_bank_of(uint32_t offset, unsigned bank_bytes) {
    return offset / bank_bytes % MM_BANK_COUNT;
}

/* Returns the cost of reading or writing word_bytes (1 to 16) at each offset, in 32 banks of bank_bytes (4
 * or 8). Offsets are multiples of word_bytes, or MM_LANE_INACTIVE. Current chips may be faster if
 * neighbouring lanes access the same 8 bytes; chips of compute capability 3.x had exceptions. */
struct mm_bank_cost mm_banks_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes,
                                     unsigned bank_bytes);

/* The cost of an access to global memory, which is transferred in whole sectors. */
struct mm_sector_cost {
    unsigned sectors;     /* sectors that contain a byte of the access */
    unsigned bytes_used;  /* bytes of the accessed words, each word counted once */
    unsigned bytes_moved; /* bytes of all these sectors */
};

/* Returns the cost of reading or writing word_bytes (1 to 32) at each offset from the beginning of a
 * sector. Offsets are multiples of word_bytes, or MM_LANE_INACTIVE. */
struct mm_sector_cost mm_sectors_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes);

/* The time of one access in cycles of the multiprocessors' clock; 0: not measured. */
struct mm_access_time {
    double latency_cycles; /* time between reads that each depend on the previous value */
    double cycles;         /* time between independent reads */
};

/* The speed of a device's memories. */
struct mm_memory_speed {
    double shared_latency_cycles;   /* shared memory, linear, words of 4 bytes */
    double cache_latency_cycles;    /* global memory that is in the L2 cache */
    double global_latency_cycles;   /* global memory that is not in the L2 cache */
    double shared_bytes_per_second; /* all multiprocessors read their own shared memory, linear */
    double global_bytes_per_second; /* all multiprocessors read more global memory than the L2 cache holds */
};

__END_DECLS
