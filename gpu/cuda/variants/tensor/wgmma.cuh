/* Kernels for the types that wgmma multiplies: the traits of tiles, and the consumers. With float8 operands
 * the tensor cores keep only 14 bits of a sum. So a consumer lets the tensor cores add up only one stage, 128
 * elements of k. The consumer then promotes the result: it adds the result to float32 sums in registers. */
#pragma once

#include "gpu/cuda/variants/tensor/store.cuh"

#include <type_traits>

struct mm_wgmma_shape {
    unsigned consumers; /* consumers of a block; each computes 64 rows */
    unsigned cols;
    unsigned cluster;
};

constexpr mm_wgmma_shape mm_wgmma_shapes[MM_TENSOR_SIZES] = {
    {1, 64, 1},  /* tiny */
    {1, 128, 2}, /* narrow */
    {2, 128, 1}, /* small */
    {2, 192, 1}, /* medium */
    {2, 256, 2}, /* large; 192 columns for float8, because promoted sums need twice the registers */
};

/* The traits of a tile, which product.cuh explains. WGMMA is the class of the type's instruction. */
template <class WGMMA, mm_tensor_size SIZE, bool IS_A_MN_MAJOR, bool IS_B_MN_MAJOR, bool PLAIN = false>
struct mm_wgmma_tile {
    using SUM = typename WGMMA::SUM;
    using ROLES = struct mm_wgmma_roles;
    static constexpr bool LOADS_ADDEND = !PLAIN;
    static constexpr bool COUNTS_PRODUCTS = false;
    static constexpr bool IS_PLAIN = PLAIN;
    static constexpr bool HAS_LIMBS = std::is_same<WGMMA, mm_wgmma_int32>::value;
    static constexpr mm_wgmma_shape SHAPE = mm_wgmma_shapes[SIZE];
    static constexpr bool PROMOTES = WGMMA::BYTES == 1 && std::is_same<SUM, float>::value; /* float8 */
    static constexpr bool A_MN_MAJOR = IS_A_MN_MAJOR;
    static constexpr bool B_MN_MAJOR = IS_B_MN_MAJOR;
    static constexpr unsigned CONSUMERS = SHAPE.consumers;
    static constexpr unsigned ROWS = CONSUMERS * MM_CONSUMER_ROWS;
    static constexpr unsigned COLS = PROMOTES && SIZE == MM_TENSOR_LARGE ? 192 : SHAPE.cols;
    static constexpr unsigned THREADS = (1 + CONSUMERS) * MM_WARPGROUP;
    static constexpr unsigned RESIDENT = 1;
    static constexpr unsigned CLUSTER = SHAPE.cluster;
    static constexpr unsigned EMPTY_ARRIVALS = CONSUMERS * CLUSTER;
    static constexpr unsigned PRODUCER_REGISTERS = 40;
    static constexpr unsigned SUMS = COLS / 2; /* sums in each consumer thread */
    static constexpr unsigned DEPTH = MM_TENSOR_LINE_BYTES / WGMMA::BYTES;
    static constexpr unsigned A_BYTES = ROWS * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned STAGE_BYTES = A_BYTES + COLS * MM_TENSOR_LINE_BYTES;
    /* Stages come first: as many as fit beside two buffers of C for each consumer. With fewer stages and more
     * buffers, 4096³ took 1% longer for bfloat16, and 8% longer for int8. With four buffers, 4096³ took 2%
     * less time for float8. */
    static constexpr unsigned LIMIT = 226 * 1024;
    static constexpr unsigned BUFFERS_MIN = PROMOTES && COLS == 128 ? 4 : 2;
    static constexpr unsigned STAGES = (LIMIT - CONSUMERS * BUFFERS_MIN * MM_C_BUFFER_BYTES) / STAGE_BYTES;
    static constexpr unsigned BUFFERS = (LIMIT - STAGES * STAGE_BYTES) / (CONSUMERS * MM_C_BUFFER_BYTES);
    static constexpr unsigned SHARED_BYTES = STAGES * STAGE_BYTES + CONSUMERS * BUFFERS * MM_C_BUFFER_BYTES;
    using instruction = typename WGMMA::template instruction<COLS, A_MN_MAJOR, B_MN_MAJOR>;
};

/* Issues a stage's wgmma instructions, which add to d if `adds`, and otherwise start sums in d. */
template <class T>
__device__ __forceinline__ void mm_tensor_multiply(typename T::SUM (&d)[T::SUMS],
                                                   const mm_tensor_shared<T> &shared, unsigned stage,
                                                   bool adds) {
    constexpr unsigned A_NEXT = T::A_MN_MAJOR ? 128 : 2; /* 16-byte units to the next instruction's operand */
    constexpr unsigned B_NEXT = T::B_MN_MAJOR ? 128 : 2;
    const unsigned char *at = shared.stages + stage * T::STAGE_BYTES;
    const uint64_t a =
        mm_wgmma_descriptor<T::A_MN_MAJOR>(at + mm_my_consumer() * MM_CONSUMER_ROWS * MM_TENSOR_LINE_BYTES);
    const uint64_t b = mm_wgmma_descriptor<T::B_MN_MAJOR>(at + T::A_BYTES);
    mm_wgmma_fence();
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t of_a = a + i * A_NEXT;
        const uint64_t of_b = b + i * B_NEXT;
        if (i > 0)
            T::instruction::add(d, of_a, of_b);
        else if (T::PROMOTES)
            T::instruction::begin(d, of_a, of_b);
        else
            T::instruction::add(d, of_a, of_b, adds);
    }
    mm_wgmma_commit();
}

/* Adds up steps `begin` to `end` - 1 in the tensor cores, to `sums` if `adds`. The consumer releases a stage
 * only after it has issued the next stage's instructions, so the tensor cores always have work. */
template <class T>
__device__ __forceinline__ void mm_tensor_add_up(const mm_tensor_shared<T> &shared, unsigned begin,
                                                 unsigned end, mm_ring_state &at,
                                                 typename T::SUM (&sums)[T::SUMS], bool adds = false) {
    unsigned before = 0;
    for (unsigned step = begin; step < end; step++) {
        const unsigned stage = mm_wait_full(shared.ring, at);
        mm_tensor_multiply<T>(sums, shared, stage, adds || step > begin);
        if (step > begin) {
            mm_wgmma_wait<1>();
            mm_release<T::CLUSTER>(shared.ring, before);
        }
        before = stage;
    }
    mm_wgmma_wait<0>();
    mm_release<T::CLUSTER>(shared.ring, before);
    mm_wgmma_fence_registers(sums);
}

/* Adds up the steps of an int32 tile, group by group. If the work ends before the last group, the partial
 * sums are still multiplied once for each later group. */
template <class T>
__device__ __forceinline__ void
mm_tensor_add_up_limbs(const mm_tensor_groups &groups, const mm_tensor_shared<T> &shared,
                       const mm_work_tile &tile, mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    bool adds = false; /* until then, `sums` has no meaning */
#pragma unroll 1
    for (unsigned group = 0; group < MM_TENSOR_LIMBS; group++) {
        const unsigned begin = max(tile.begin, groups.begin[group]);
        const unsigned end = min(tile.end, groups.begin[group + 1]);
#pragma unroll
        for (unsigned i = 0; i < T::SUMS; i++)
            sums[i] <<= 8;
        mm_wgmma_fence_registers(sums);
        if (begin >= end)
            continue;
        mm_tensor_add_up<T>(shared, begin, end, at, sums, adds);
        adds = true;
    }
}

/* Adds each step's result to float32 sums in registers, in the order of the steps. If a thread has registers
 * for two results, the tensor cores already compute the next result meanwhile. Otherwise the tensor cores
 * work for another consumer meanwhile. */
template <class T>
__device__ __forceinline__ void mm_tensor_promote(const mm_tensor_shared<T> &shared, const mm_work_tile &tile,
                                                  mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    using results = typename T::SUM[T::SUMS];
    constexpr bool HAS_TWO = T::SUMS <= 64;
    results d[HAS_TWO ? 2 : 1];
    unsigned stage; /* of the result that the tensor cores compute */
    const auto start = [&](results &result) {
        stage = mm_wait_full(shared.ring, at);
        mm_tensor_multiply<T>(result, shared, stage, false);
    };
    const auto promote = [&](results &result, unsigned from) {
        mm_wgmma_fence_registers(result);
        mm_release<T::CLUSTER>(shared.ring, from);
#pragma unroll
        for (unsigned i = 0; i < T::SUMS; i++)
            sums[i] += result[i];
    };
    const auto finish = [&](results &result) {
        mm_wgmma_wait<0>();
        promote(result, stage);
    };
    const auto turn = [&](results &last, results &next) {
        const unsigned before = stage;
        start(next);
        mm_wgmma_wait<1>();
        promote(last, before);
    };
#pragma unroll
    for (unsigned i = 0; i < T::SUMS; i++)
        sums[i] = 0;
    if constexpr (HAS_TWO) {
        unsigned left = tile.end - tile.begin; /* steps whose results are not in `sums` */
        start(d[0]);
#pragma unroll 1
        for (; left > 2; left -= 2) {
            turn(d[0], d[1]);
            turn(d[1], d[0]);
        }
        if (left == 2) {
            turn(d[0], d[1]);
            finish(d[1]);
        } else {
            finish(d[0]);
        }
    } else {
        for (unsigned step = tile.begin; step < tile.end; step++) {
            start(d[0]);
            finish(d[0]);
        }
    }
}

struct mm_wgmma_roles {
    static __device__ __forceinline__ unsigned full_arrivals(const mm_tensor_plan &) {
        return 1;
    }

    template <class T>
    static __device__ __forceinline__ void produce(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk &walk) {
        if (threadIdx.x == 0)
            mm_tensor_produce<T>(plan, shared, walk);
    }

    template <class T>
    static __device__ __forceinline__ void consume(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk walk) {
        if (T::SUMS > 64)
            walk = mm_tensor_walk_begin<T>(
                plan); /* computed again, because keeping the walk would take registers */
        mm_ring_state at = {0, 0};
        typename T::SUM sums[T::SUMS] = {};
        for (; !walk.is_over; mm_tensor_walk_next<T>(plan, walk)) {
            const mm_work_tile &work = walk.work;
            if constexpr (T::PROMOTES)
                mm_tensor_promote<T>(shared, work, at, sums);
            else if constexpr (T::HAS_LIMBS)
                mm_tensor_add_up_limbs<T>(plan.groups, shared, work, at, sums);
            else
                mm_tensor_add_up<T>(shared, work.begin, work.end, at, sums);
            if (T::IS_PLAIN || mm_is_whole(plan, work))
                mm_tensor_epilogue<T>(plan, shared, walk.tile, at, sums);
            else
                mm_store_sums(sums,
                              mm_sums_at<T::SUMS, T::CONSUMERS>(static_cast<typename T::SUM *>(plan.sums),
                                                                mm_tensor_slot<T>(plan, work) * T::CLUSTER +
                                                                    blockIdx.x % T::CLUSTER));
        }
        if (mm_my_thread() == 0)
            mm_tma_store_wait<0>(); /* TMA must have read shared memory before the block ends */
        __syncwarp();               /* mm_cluster_sync needs whole warps */
    }
};

template <class WGMMA, mm_tensor_size SIZE, bool A_MN_MAJOR, bool B_MN_MAJOR>
mm_tensor_kernel mm_wgmma_kernel_of() {
    using plain = mm_wgmma_tile<WGMMA, SIZE, A_MN_MAJOR, B_MN_MAJOR, true>;
    mm_tensor_kernel kernel = mm_tensor_kernel_of<mm_wgmma_tile<WGMMA, SIZE, A_MN_MAJOR, B_MN_MAJOR>>();
    kernel.plain = reinterpret_cast<const void *>(mm_tensor_product<plain>);
    return kernel;
}

template <class WGMMA, mm_tensor_size SIZE> void mm_tensor_add(mm_tensor_kernels &kernels) {
    kernels.of[SIZE][0][0] = mm_wgmma_kernel_of<WGMMA, SIZE, false, false>();
    if constexpr (WGMMA::BYTES == 2) {
        kernels.of[SIZE][0][1] = mm_wgmma_kernel_of<WGMMA, SIZE, false, true>();
        kernels.of[SIZE][1][0] = mm_wgmma_kernel_of<WGMMA, SIZE, true, false>();
        kernels.of[SIZE][1][1] = mm_wgmma_kernel_of<WGMMA, SIZE, true, true>();
    }
}

template <class WGMMA> mm_tensor_kernels mm_tensor_kernels_of() {
    mm_tensor_kernels kernels = {};
    mm_tensor_add<WGMMA, MM_TENSOR_TINY>(kernels);
    mm_tensor_add<WGMMA, MM_TENSOR_NARROW>(kernels);
    mm_tensor_add<WGMMA, MM_TENSOR_SMALL>(kernels);
    mm_tensor_add<WGMMA, MM_TENSOR_MEDIUM>(kernels);
    mm_tensor_add<WGMMA, MM_TENSOR_LARGE>(kernels);
    return kernels;
}
