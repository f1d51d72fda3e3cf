/* The kernels of all types that wgmma multiplies. A type is its instruction, its layout in shared memory, and
 * how its sums become elements of C. A consumer computes 64 rows of C. A stage is four instructions. They run
 * while the consumer waits for the next stage, so the tensor cores always have work.
 *
 * float8's tensor cores keep 14 bits of a sum. So the sum of each stage, 128 of k, is added to one in float32
 * registers (PROMOTES). */
#pragma once

#include "gpu/cuda/variants/tensor/store.cuh"

/* A type's kernel for one tile: CONSUMERS of 64 rows each, WIDE columns, blocks of CLUSTER, STAGES. TURNED
 * operands are not K-major. */
template <template <unsigned, bool, bool> class INSTRUCTION, typename SUM_TYPE, unsigned BYTES,
          bool IS_PROMOTED, unsigned GROUPS, unsigned COLS, unsigned BLOCKS, bool TURNED_A, bool TURNED_B>
struct mm_tensor_type {
    using wgmma = INSTRUCTION<COLS, TURNED_A, TURNED_B>;
    using SUM = SUM_TYPE;
    using ROLES = struct mm_wgmma_roles;
    static constexpr bool PROMOTES = IS_PROMOTED;
    static constexpr bool A_TURNED = TURNED_A;
    static constexpr bool B_TURNED = TURNED_B;
    static constexpr unsigned CONSUMERS = GROUPS;
    static constexpr unsigned ROWS = CONSUMERS * MM_CONSUMER_ROWS;
    static constexpr unsigned THREADS = (1 + CONSUMERS) * MM_GROUP;
    static constexpr unsigned WIDE = COLS;
    static constexpr unsigned RESIDENT = 1; /* blocks of a multiprocessor */
    static constexpr unsigned CLUSTER = BLOCKS;
    static constexpr unsigned RELEASES = CONSUMERS * CLUSTER; /* of a stage */
    static constexpr unsigned PRODUCER_REGISTERS = 40;
    static constexpr unsigned SUMS = WIDE / 2; /* of a consumer thread */
    static constexpr unsigned DEPTH = MM_TENSOR_LINE_BYTES / BYTES;
    static constexpr unsigned A_BYTES = ROWS * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned B_BYTES = WIDE * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES;
    /* As many stages as two buffers of C for each consumer leave, then as many buffers as fit. With three
     * stages and more buffers 4096³ took 1% longer with bfloat16, and 8% with int8. */
    static constexpr unsigned LIMIT = 226 * 1024;
    static constexpr unsigned STAGES = (LIMIT - CONSUMERS * 2 * MM_C_BUFFER_BYTES) / STAGE_BYTES;
    static constexpr unsigned BUFFERS = (LIMIT - STAGES * STAGE_BYTES) / (CONSUMERS * MM_C_BUFFER_BYTES);
    static constexpr unsigned SHARED_BYTES = STAGES * STAGE_BYTES + CONSUMERS * BUFFERS * MM_C_BUFFER_BYTES;
};

/* --- the consumers ------------------------------------------------------------------------------- */

/* Issues the products of a stage. The first one begins a sum, unless `adds`. */
template <class T>
__device__ __forceinline__ void mm_tensor_multiply(typename T::SUM (&d)[T::SUMS],
                                                   const mm_tensor_shared<T> &shared, unsigned stage,
                                                   bool adds) {
    constexpr unsigned K_MAJOR_NEXT = 2; /* in units of 16 bytes */
    constexpr unsigned TURNED_NEXT = 128;
    const unsigned char *at = shared.stages + stage * T::STAGE_BYTES;
    const uint64_t a =
        mm_wgmma_descriptor<!T::A_TURNED>(at + mm_my_consumer() * MM_CONSUMER_ROWS * MM_TENSOR_LINE_BYTES);
    const uint64_t b = mm_wgmma_descriptor<!T::B_TURNED>(at + T::A_BYTES);
    mm_wgmma_fence();
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t of_a = a + i * (T::A_TURNED ? TURNED_NEXT : K_MAJOR_NEXT);
        const uint64_t of_b = b + i * (T::B_TURNED ? TURNED_NEXT : K_MAJOR_NEXT);
        if (i > 0)
            T::wgmma::add(d, of_a, of_b);
        else if (T::PROMOTES)
            T::wgmma::begin(d, of_a, of_b);
        else
            T::wgmma::add_if(d, of_a, of_b, adds);
    }
    mm_wgmma_commit();
}

/* A stage is released once the next one's products are issued and its own are complete. */
template <class T>
__device__ __forceinline__ void mm_tensor_add_up(const mm_tensor_shared<T> &shared, const mm_work_tile &tile,
                                                 mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    unsigned before = 0;
    for (unsigned step = tile.begin; step < tile.end; step++) {
        const unsigned stage = mm_wait_full(shared.ring, at);
        mm_tensor_multiply<T>(sums, shared, stage, step > tile.begin);
        if (step > tile.begin) {
            mm_wgmma_wait<1>();
            mm_release<T::CLUSTER>(shared.ring, before);
        }
        before = stage;
    }
    mm_wgmma_wait<0>();
    mm_release<T::CLUSTER>(shared.ring, before);
    mm_wgmma_fence_registers(sums);
}

/* The same, with the sum of each stage added to `sums`. Meanwhile the other consumer uses the tensor cores.
 */
template <class T>
__device__ __forceinline__ void mm_tensor_promote(const mm_tensor_shared<T> &shared, const mm_work_tile &tile,
                                                  mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    typename T::SUM d[T::SUMS];
#pragma unroll
    for (unsigned i = 0; i < T::SUMS; i++)
        sums[i] = 0;
    for (unsigned step = tile.begin; step < tile.end; step++) {
        const unsigned stage = mm_wait_full(shared.ring, at);
        mm_tensor_multiply<T>(d, shared, stage, false);
        mm_wgmma_wait<0>();
        mm_wgmma_fence_registers(d);
        mm_release<T::CLUSTER>(shared.ring, stage);
#pragma unroll
        for (unsigned i = 0; i < T::SUMS; i++)
            sums[i] += d[i];
    }
}

struct mm_wgmma_roles {
    static __device__ __forceinline__ unsigned arrivals(const mm_tensor_plan &) {
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
            walk = mm_tensor_walk_of<T>(plan); /* found again, it takes fewer registers */
        mm_ring_state at = {0, 0};
        typename T::SUM sums[T::SUMS] = {};
        for (; !walk.is_over; mm_tensor_step<T>(plan, walk)) {
            const mm_work_tile &work = walk.work;
            if constexpr (T::PROMOTES)
                mm_tensor_promote<T>(shared, work, at, sums);
            else
                mm_tensor_add_up<T>(shared, work, at, sums);
            if (work.end - work.begin < plan.schedule.steps)
                mm_store_sums(sums,
                              mm_sums_at<T::SUMS, T::CONSUMERS>(static_cast<typename T::SUM *>(plan.sums),
                                                                mm_tensor_slot<T>(plan, work) * T::CLUSTER +
                                                                    blockIdx.x % T::CLUSTER));
            else
                mm_tensor_epilogue<T>(plan, shared, walk.tile, sums);
        }
        if (mm_my_thread() == 0)
            mm_box_stores_wait<0>(); /* a block keeps its shared memory until it was read */
        __syncwarp();                /* whole warps arrive at the barrier behind */
    }
};

/* A type's kernels. COLS: the columns of a large tile. */
template <template <unsigned, bool, bool> class INSTRUCTION, typename SUM, unsigned BYTES, bool PROMOTES,
          unsigned COLS>
mm_tensor_kernels mm_tensor_kernels_of() {
    mm_tensor_kernels kernels = {};
    auto &tiny = kernels.of[MM_TENSOR_TINY];
    auto &narrow = kernels.of[MM_TENSOR_NARROW];
    auto &small = kernels.of[MM_TENSOR_SMALL];
    auto &medium = kernels.of[MM_TENSOR_MEDIUM];
    auto &large = kernels.of[MM_TENSOR_LARGE];
#define MM_BOTH(a, b)                                                                                        \
    tiny[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 1, 64, 1, a, b>>();   \
    narrow[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, 64, 1, a, b>>(); \
    small[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, 128, 1, a, b>>(); \
    medium[a][b] =                                                                                           \
        mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, 192, 1, a, b>>();           \
    large[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, COLS, 2, a, b>>()
    MM_BOTH(false, false);
    if constexpr (BYTES == 2) {
        MM_BOTH(false, true);
        MM_BOTH(true, false);
        MM_BOTH(true, true);
    }
#undef MM_BOTH
    return kernels;
}
