/* Applies the epilogue to sums, rounds them and stores them in C. A consumer that uses wgmma writes its 64
 * rows of C to buffers in shared memory. Each buffer takes a part of C: 128 bytes of each row. While TMA
 * copies full buffers to C, the consumer fills the next buffer. If TMA cannot store C, the consumer's threads
 * copy the buffers. */
#pragma once

#include "gpu/cuda/variants/finish.cuh"
#include "gpu/cuda/variants/tensor/product.cuh"

#include <type_traits>

/* Returns the address of a row's byte in a buffer, which has TMA's 128-byte swizzle. */
template <typename BYTE>
__device__ __forceinline__ BYTE *mm_staged_at(BYTE *staged, unsigned row, unsigned byte) {
    return staged + row * MM_TENSOR_LINE_BYTES + ((byte / 16 ^ row % 8) * 16) + byte % 16;
}

template <typename ELEMENT> struct alignas(2 * sizeof(ELEMENT)) mm_pair { ELEMENT elements[2]; };

/* Rounds two sums to ELEMENT. If ELEMENT is uint16_t, the first argument says whether the type is bfloat16
 * (true) or float16. */
template <typename ELEMENT, typename SUM>
__device__ __forceinline__ mm_pair<ELEMENT> mm_round_pair(bool, SUM first, SUM second) {
    return {{static_cast<ELEMENT>(first), static_cast<ELEMENT>(second)}};
}

template <>
__device__ __forceinline__ mm_pair<uint16_t> mm_round_pair(bool is_bfloat16, float first, float second) {
    uint32_t pair;
    if (is_bfloat16)
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    else
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return {{static_cast<uint16_t>(pair), static_cast<uint16_t>(pair >> 16)}};
}

__device__ __forceinline__ uint32_t mm_word_of(const mm_pair<uint16_t> &pair) {
    return pair.elements[0] | static_cast<uint32_t>(pair.elements[1]) << 16;
}

/* Writes 64 columns of C, with elements of 2 bytes, to a buffer. FIRST is the index of the first of the
 * thread's sums for them. Lane i of a warp passes stmatrix the address of 8 elements in row i % 16. */
template <unsigned FIRST, unsigned COUNT>
__device__ __forceinline__ void mm_stage_narrow(unsigned char *staged, bool is_bfloat16,
                                                const float (&sums)[COUNT]) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = mm_my_thread() / 32 * 16 + lane % 16;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint32_t pairs[4];
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            pairs[j] = mm_word_of(mm_round_pair<uint16_t>(is_bfloat16, sums[FIRST + 8 * i + 2 * j],
                                                          sums[FIRST + 8 * i + 2 * j + 1]));
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         mm_shared_address(mm_staged_at(staged, row, i * 32 + lane / 16 * 16))),
                     "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                     : "memory");
    }
}

/* Writes 32 columns of C, with elements of 4 bytes, to a buffer. FIRST is the index of the first of the
 * thread's sums for them. */
template <unsigned FIRST, typename SUM, unsigned COUNT>
__device__ __forceinline__ void mm_stage_wide(unsigned char *staged, const SUM (&sums)[COUNT]) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < 16; i += 2) {
        const unsigned row = mm_my_thread() / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        *reinterpret_cast<mm_pair<SUM> *>(mm_staged_at(staged, row, i / 4 * 32 + lane % 4 * 8)) =
            mm_round_pair<SUM>(false, sums[FIRST + i], sums[FIRST + i + 1]);
    }
}

/* --- stores without TMA, which needs rows of C that begin at multiples of 16 bytes.
 *
 * Threads copy chunks: 16 aligned bytes of C, which lie in two neighbouring groups of 16 bytes in a buffer.
 * If a part ends inside a chunk, the chunk is copied with the next part. */

constexpr unsigned MM_CHUNK = 16; /* bytes */

/* The buffers of a part of C and of the part to its left. */
struct mm_staged_part {
    const unsigned char *part;
    const unsigned char *left;
    bool is_first; /* the part is the leftmost of its tile */
    bool is_last;  /* the part is the rightmost of its tile */
};

/* Returns the 16 bytes of a part's row that begin `shift` bytes before byte 16·chunk. */
__device__ __forceinline__ uint4 mm_staged_chunk(const mm_staged_part &staged, unsigned row, unsigned chunk,
                                                 unsigned shift) {
    constexpr unsigned CHUNKS = MM_TENSOR_LINE_BYTES / MM_CHUNK;
    const unsigned skipped = MM_CHUNK - shift; /* bytes of x that are not returned */
    const uint4 x = *reinterpret_cast<const uint4 *>(
        mm_staged_at(chunk > 0 ? staged.part : staged.left, row, (chunk + CHUNKS - 1) % CHUNKS * MM_CHUNK));
    const uint4 y = *reinterpret_cast<const uint4 *>(mm_staged_at(staged.part, row, chunk * MM_CHUNK));
    uint32_t words[9] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w, 0};
#pragma unroll
    for (unsigned step = 4; step > 0; step /= 2)
        if ((skipped / 4 & step) != 0)
#pragma unroll
            for (unsigned i = 0; i + step < 9; i++)
                words[i] = words[i + step];
    const unsigned bits = skipped % 4 * 8;
    return {__funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
            __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits)};
}

/* Copies bytes `at` to `end` - 1 of a part's row to C, where the row begins at `to`. */
template <typename ELEMENT>
__device__ __forceinline__ void mm_copy_elements(const unsigned char *staged, unsigned row, int at, int end,
                                                 unsigned char *to) {
#pragma unroll 1
    for (; at < end; at += sizeof(ELEMENT))
        *reinterpret_cast<ELEMENT *>(to + at) =
            *reinterpret_cast<const ELEMENT *>(mm_staged_at(staged, row, static_cast<unsigned>(at)));
}

/* Copies a part to C at (row, col). Eight threads copy each row. */
template <typename ELEMENT>
__device__ __forceinline__ void mm_copy_staged(const mm_staged_part &staged, const mm_product &product,
                                               size_t row, size_t col) {
    constexpr int LINE = MM_TENSOR_LINE_BYTES;
    constexpr unsigned CHUNKS = LINE / MM_CHUNK;
    if (col >= product.n)
        return;
    const size_t left_bytes = (product.n - col) * sizeof(ELEMENT);
    const int bytes = left_bytes < LINE ? static_cast<int>(left_bytes) : LINE;
    const bool is_last = staged.is_last || left_bytes <= LINE;
    const unsigned chunk = mm_my_thread() % CHUNKS;
#pragma unroll 1
    for (unsigned down = mm_my_thread() / CHUNKS; down < MM_CONSUMER_ROWS && row + down < product.m;
         down += MM_WARPGROUP / CHUNKS) {
        unsigned char *to = static_cast<unsigned char *>(product.c.data) +
                            ((row + down) * product.c.ld + col) * sizeof(ELEMENT);
        const unsigned shift = static_cast<unsigned>(reinterpret_cast<size_t>(to) % MM_CHUNK);
        const int begin = static_cast<int>(chunk * MM_CHUNK) - static_cast<int>(shift);
        const int end = begin + static_cast<int>(MM_CHUNK);
        if (end <= bytes && (begin >= 0 || !staged.is_first)) {
            *reinterpret_cast<uint4 *>(to + begin) = mm_staged_chunk(staged, down, chunk, shift);
        } else {
            if (begin < 0 && !staged.is_first)
                mm_copy_elements<ELEMENT>(staged.left, down, LINE + begin, LINE, to - LINE);
            mm_copy_elements<ELEMENT>(staged.part, down, max(begin, 0), min(end, bytes), to);
        }
        if (is_last && chunk == CHUNKS - 1)
            mm_copy_elements<ELEMENT>(staged.part, down, end, bytes, to);
    }
}

/* Copies a part to C, to (row, col) of the tile's product. All threads of the consumer must have staged the
 * part. */
template <class T>
__device__ __forceinline__ void mm_store_staged(const mm_tensor_plan &plan, const mm_staged_part &staged,
                                                unsigned row, unsigned col, const mm_tensor_tile &tile,
                                                bool is_narrow) {
    if (T::IS_PLAIN || plan.maps_c) {
        if (mm_my_thread() == 0)
            mm_tma_store(&plan.of_c, static_cast<int>(col), static_cast<int>(row),
                         static_cast<int>(tile.product), staged.part);
        return;
    }
    if (is_narrow)
        mm_copy_staged<uint16_t>(staged, mm_tensor_item(plan, tile), row, col);
    else
        mm_copy_staged<uint32_t>(staged, mm_tensor_item(plan, tile), row, col);
}

/* --- the epilogue's terms: alpha, the addend, the bias and relu */

__device__ __forceinline__ float mm_relu(float x) {
    asm("max.NaN.f32 %0, %0, 0f00000000;" : "+f"(x));
    return x;
}
__device__ __forceinline__ uint32_t mm_relu(uint32_t x) {
    return max(static_cast<int32_t>(x), 0);
}

/* Converts two elements of C's type to the type of the sums. */
template <typename SUM>
__device__ __forceinline__ mm_pair<SUM> mm_sums_of(mm_dtype, const mm_pair<SUM> &pair) {
    return pair;
}
template <typename SUM>
__device__ __forceinline__ mm_pair<SUM> mm_sums_of(mm_dtype dtype, const mm_pair<uint16_t> &pair) {
    const uint32_t word = mm_word_of(pair);
    mm_pair<SUM> sums;
    if (dtype == MM_BFLOAT16)
        return {{__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000)}};
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(sums.elements[0]), "=f"(sums.elements[1])
        : "r"(word));
    return sums;
}

/* Applies the epilogue to the thread's sums of one part of C: EACH sums, beginning with number FIRST. The
 * part begins at column `col` of C. `addend` is the matching part of the addend in shared memory, or
 * nullptr. */
template <typename ELEMENT, unsigned FIRST, unsigned EACH, typename SUM, unsigned COUNT>
__device__ __forceinline__ void mm_finish_part(const mm_product &product, const unsigned char *addend,
                                               unsigned col, SUM (&sums)[COUNT]) {
    using pair = mm_pair<ELEMENT>;
    const mm_epilogue &epilogue = product.epilogue;
    const SUM alpha = mm_cuda_scale(epilogue.alpha, SUM()), beta = mm_cuda_scale(epilogue.beta, SUM());
    const mm_dtype dtype = product.c.dtype;
    const unsigned lane = threadIdx.x % 32, n = static_cast<unsigned>(product.n);
    const unsigned row = mm_my_thread() / 32 * 16 + lane / 4;
    const unsigned first_col = col + lane % 4 * 2;
    const unsigned left =
        first_col < n ? n - first_col : 0; /* number of columns of C from first_col to the end */
    if (alpha != static_cast<SUM>(1))
#pragma unroll
        for (unsigned i = FIRST; i < FIRST + EACH; i++)
            sums[i] = mm_cuda_multiply_add(alpha, sums[i], -SUM());
    if (addend != nullptr)
#pragma unroll
        for (unsigned i = 0; i < EACH; i += 2) {
            const unsigned byte = (i / 4 * 8 + lane % 4 * 2) * sizeof(ELEMENT);
            const pair x = *reinterpret_cast<const pair *>(mm_staged_at(addend, row + i / 2 % 2 * 8, byte));
            const mm_pair<SUM> values = mm_sums_of<SUM>(dtype, x);
#pragma unroll
            for (unsigned j = 0; j < 2; j++)
                sums[FIRST + i + j] = mm_cuda_multiply_add(beta, values.elements[j], sums[FIRST + i + j]);
        }
    if (product.bias.rows > 0)
#pragma unroll
        for (unsigned i = 0; i < EACH; i += 4) {
            pair x = {};
            if (i * 2 < left)
                x = static_cast<const pair *>(product.bias.data)[(first_col + i * 2) / 2];
            const mm_pair<SUM> values = mm_sums_of<SUM>(dtype, x);
#pragma unroll
            for (unsigned j = 0; j < 4; j++)
                sums[FIRST + i + j] += values.elements[j % 2];
        }
    if (epilogue.activation == MM_ACTIVATION_RELU)
#pragma unroll
        for (unsigned i = FIRST; i < FIRST + EACH; i++)
            sums[i] = mm_relu(sums[i]);
}

/* A consumer's position in the ring while it reads the addend. `stage` is the stage that it reads. */
template <class T> struct mm_addend_reader {
    const mm_tensor_shared<T> &shared;
    mm_ring_state &at;
    unsigned stage;
};

/* Finishes and stores a part of the tile, then calls itself for the part to its right. FIRST is the index of
 * the first of the thread's sums in the part. */
template <class T, bool IS_NARROW, unsigned FIRST>
__device__ __forceinline__ void mm_tensor_store(const mm_tensor_plan &plan, unsigned char *staged,
                                                const mm_tensor_tile &tile, mm_addend_reader<T> &addend,
                                                typename T::SUM (&sums)[T::SUMS]) {
    if constexpr (FIRST < T::SUMS) {
        constexpr unsigned EACH = IS_NARROW ? 32 : 16; /* sums of a thread in one part */
        constexpr unsigned PART = FIRST / EACH;
        using element = std::conditional_t<IS_NARROW, uint16_t, typename T::SUM>;
        using parts = mm_addend_parts<T, IS_NARROW>;
        unsigned char *at = staged + PART % T::BUFFERS * MM_C_BUFFER_BYTES;
        const unsigned char *left = PART == 0 ? at : staged + (PART - 1) % T::BUFFERS * MM_C_BUFFER_BYTES;
        const bool has_addend = T::LOADS_ADDEND && plan.product.addend.rows > 0;
        if (PART % parts::EACH == 0 && has_addend)
            addend.stage = mm_wait_full(addend.shared.ring, addend.at);
        if (!T::IS_PLAIN && plan.product.epilogue.is_set)
            mm_finish_part<element, FIRST, EACH>(
                plan.product,
                has_addend ? addend.shared.stages + addend.stage * T::STAGE_BYTES +
                                 (PART % parts::EACH * T::CONSUMERS + mm_my_consumer()) * MM_C_BUFFER_BYTES
                           : nullptr,
                tile.col + FIRST * 2, sums);
        /* Waits until TMA has read the buffer. The first part waits for all copies, because the previous tile
         * may have ended with any buffer. */
        if (PART == 0 || PART >= T::BUFFERS) {
            if (mm_my_thread() == 0)
                mm_tma_store_wait<PART == 0 ? 0 : T::BUFFERS - 1>();
            mm_consumer_sync();
        }
        if constexpr (IS_NARROW)
            mm_stage_narrow<FIRST>(at, plan.product.c.dtype == MM_BFLOAT16, sums);
        else
            mm_stage_wide<FIRST>(at, sums);
        mm_async_proxy_fence();
        mm_consumer_sync();
        if ((PART % parts::EACH == parts::EACH - 1 || FIRST + EACH == T::SUMS) && has_addend)
            mm_release<T::CLUSTER>(addend.shared.ring, addend.stage);
        mm_store_staged<T>(plan, {at, left, PART == 0, FIRST + EACH == T::SUMS},
                           tile.row + mm_my_consumer() * MM_CONSUMER_ROWS, tile.col + FIRST * 2, tile,
                           IS_NARROW);
        mm_tensor_store<T, IS_NARROW, FIRST + EACH>(plan, staged, tile, addend, sums);
    }
}

/* Applies the epilogue, and stores a whole tile. `at` is the consumer's position in the ring. */
template <class T>
__device__ __forceinline__ void
mm_tensor_epilogue(const mm_tensor_plan &plan, const mm_tensor_shared<T> &shared, const mm_tensor_tile &tile,
                   mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    unsigned char *staged =
        shared.stages + T::STAGES * T::STAGE_BYTES + mm_my_consumer() * (T::BUFFERS * MM_C_BUFFER_BYTES);
    mm_addend_reader<T> addend = {shared, at, 0};
    if constexpr (std::is_same<typename T::SUM, float>::value) {
        if (mm_is_narrow<T>(plan)) {
            mm_tensor_store<T, true, 0>(plan, staged, tile, addend, sums);
            return;
        }
    }
    mm_tensor_store<T, false, 0>(plan, staged, tile, addend, sums);
}

/* Stores two neighbouring elements, or only the first element if not is_whole. One access for both elements
 * halves the traffic to the L2 cache. */
template <typename ELEMENT>
__device__ __forceinline__ void mm_store_pair(const mm_matrix &c, size_t index, bool is_whole,
                                              const mm_pair<ELEMENT> &pair) {
    ELEMENT *to = static_cast<ELEMENT *>(c.data) + index;
    if (is_whole && reinterpret_cast<size_t>(to) % sizeof pair == 0) {
        *reinterpret_cast<mm_pair<ELEMENT> *>(to) = pair;
        return;
    }
    to[0] = pair.elements[0];
    if (is_whole)
        to[1] = pair.elements[1];
}

/* Stores two sums that are neighbours in a row of C, unless they lie past an edge of C. */
template <typename SUM>
__device__ __forceinline__ void mm_store_neighbours(const mm_product &product, size_t row, size_t col,
                                                    SUM first, SUM second) {
    if (row >= product.m || col >= product.n)
        return;
    const mm_matrix &c = product.c;
    const size_t index = row * c.ld + col;
    const bool is_whole = col + 1 < product.n;
    if (std::is_same<SUM, double>::value && c.dtype != MM_FLOAT64)
        mm_store_pair(c, index, is_whole, mm_round_pair<float>(false, first, second));
    else if (std::is_same<SUM, float>::value && c.dtype != MM_FLOAT32)
        mm_store_pair(c, index, is_whole, mm_round_pair<uint16_t>(c.dtype == MM_BFLOAT16, first, second));
    else
        mm_store_pair(c, index, is_whole, mm_round_pair<SUM>(false, first, second));
}
