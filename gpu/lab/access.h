/* How a warp accesses memory: patterns, and a model of what each must cost. Shared memory lies in 32 banks,
 * and a bank serves one word at a time. Global memory is moved in sectors of 32 bytes. This is plain
 * arithmetic over the 32 addresses of a warp; a backend's `probe` times what a device really takes.
 *
 * Sources: NVIDIA's CUDA C++ Programming Guide, on the compute capabilities ("Shared Memory": 32 banks,
 * successive words in successive banks, and no conflict between lanes that access the same word: of a read
 * all get it, of a write one lane's wins); its edition 4.0, F.4.3.2 (an access of 64 bits a lane is served by
 * half-warps, and lanes conflict only within one); its editions up to CUDA 12 on compute capability 3.x
 * (banks of 8 bytes); and, on sectors, the Best Practices Guide ("Coalesced Access to Global Memory").
 *
 * The functions keep no state: any thread. They cannot fail, and take no NULL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"

__BEGIN_DECLS

enum { MM_WARP_LANES = 32, MM_BANK_COUNT = 32, MM_SECTOR_BYTES = 32, MM_STRIDE_MAX = 32, MM_SHIFT_MAX = 31 };

/* The last word that MM_PATTERN_OFFSETS can name: that of a tile of 32 rows of 64 words. */
enum { MM_OFFSET_MAX = 2047 };

/* Every access stays within so much shared memory: all words up to that one, of 8 bytes each, padded. */
enum { MM_ACCESS_BYTES_MAX = (MM_OFFSET_MAX + MM_OFFSET_MAX / MM_BANK_COUNT + 1) * 8 };

/* In place of a word or a byte: the lane takes no part. */
#define MM_LANE_INACTIVE UINT32_MAX

#define MM_MEMORY_TABLE(X)                                                                                   \
    X(MM_MEMORY_SHARED, "shared")                                                                            \
    X(MM_MEMORY_GLOBAL, "global")

enum mm_memory { MM_MEMORY_TABLE(MM_CONSTANT) MM_MEMORY_COUNT };

/* One row a pattern: constant, wire name. */
#define MM_PATTERN_TABLE(X)                                                                                  \
    X(MM_PATTERN_LINEAR, "linear")       /* lane i reads word i */                                           \
    X(MM_PATTERN_PERMUTED, "permuted")   /* the same words, shuffled within each half of the warp */         \
    X(MM_PATTERN_STRIDE, "stride")       /* lane i reads word s*i */                                         \
    X(MM_PATTERN_SAME_BANK, "same_bank") /* lane i reads word 32*i */                                        \
    X(MM_PATTERN_BROADCAST, "broadcast") /* every lane reads word 0 */                                       \
    X(MM_PATTERN_OFFSETS, "offsets")     /* each lane reads a word of its own choice, or none */

enum mm_pattern { MM_PATTERN_TABLE(MM_CONSTANT) MM_PATTERN_COUNT };

/* The wire names. Static strings. */
const char *mm_memory_name(enum mm_memory memory);
const char *mm_pattern_name(enum mm_pattern pattern);

/* One read or write by a whole warp. */
struct mm_access {
    enum mm_memory memory;
    enum mm_pattern pattern;
    unsigned stride; /* words from one lane to the next, 1 to MM_STRIDE_MAX, in MM_PATTERN_STRIDE; else 0 */
    unsigned word_bytes;           /* each lane reads 4 or 8 */
    bool padded;                   /* one word is left out after every 32, as in rows of 33 */
    uint32_t words[MM_WARP_LANES]; /* of MM_PATTERN_OFFSETS, each up to MM_OFFSET_MAX or MM_LANE_INACTIVE, in
                                      shared memory alone */
    unsigned shift; /* added to each lane's word before padding, 0 to MM_SHIFT_MAX; 0 of MM_PATTERN_OFFSETS */
};

/* The byte at which each lane's word begins, padding counted, or MM_LANE_INACTIVE; word 0 begins at 0. */
void mm_access_offsets(const struct mm_access *access, uint32_t offsets[MM_WARP_LANES]);

/* What an access costs in shared memory. A transaction moves at most the width of all banks, so in banks of
 * 4 bytes an access of 8 bytes a lane takes two transactions of 16 lanes, and one of 16 bytes four of 8
 * lanes. Within a transaction, a bank serves its words one after another, each to all lanes that access it.
 *
 * Of 16 bytes a lane, two transactions are one if each of their lanes has the words of its neighbour: of lane
 * i^1 everywhere, or of lane i^2 everywhere. The counters of an H200 say so: a read takes 4 passes if all its
 * quads are different (of B in `vectorized`), and 2 if they come in pairs (of A there, and in `warp_tiled`).
 */
struct mm_bank_cost {
    unsigned degree; /* the most words that one bank serves in one transaction: 1 is no conflict */
    unsigned passes; /* over the banks: the degrees of all transactions together */
    unsigned transactions;
    uint32_t conflicts; /* bit i: in lane i's transaction one of its banks serves another word as well */
};

/* The bank of the byte at an offset, from 0. */
static inline unsigned mm_bank_of(uint32_t offset, unsigned bank_bytes) {
    return offset / bank_bytes % MM_BANK_COUNT;
}

/* The cost of reading or writing word_bytes (1 to 16) at each offset in 32 banks of bank_bytes (4 or 8).
 * Offsets are multiples of word_bytes, or MM_LANE_INACTIVE. Current chips may do better if neighbouring lanes
 * access the same 8 bytes; chips of compute capability 3.x had exceptions. */
struct mm_bank_cost mm_banks_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes,
                                     unsigned bank_bytes);

/* What an access costs in global memory, which moves whole sectors. */
struct mm_sector_cost {
    unsigned sectors;     /* that hold a byte of the access */
    unsigned bytes_used;  /* of different words */
    unsigned bytes_moved; /* in all these sectors */
};

/* The cost of reading or writing word_bytes (1 to 32) at each offset, from a sector's first byte. Offsets are
 * multiples of word_bytes, or MM_LANE_INACTIVE. */
struct mm_sector_cost mm_sectors_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes);

/* The time of one access, in cycles of the multiprocessors' clock, from one read to the next; 0: not
 * measured. */
struct mm_access_time {
    double latency_cycles; /* if the next read depends on the value that was read */
    double cycles;         /* if it does not */
};

/* The speed of a device's memories as wholes. */
struct mm_memory_speed {
    double shared_latency_cycles;   /* linear, words of 4 bytes */
    double cache_latency_cycles;    /* global memory that lies in the device's L2 cache */
    double global_latency_cycles;   /* global memory that does not */
    double shared_bytes_per_second; /* every multiprocessor reads its own, linear */
    double global_bytes_per_second; /* every multiprocessor reads a share of more than the L2 cache holds */
};

__END_DECLS
