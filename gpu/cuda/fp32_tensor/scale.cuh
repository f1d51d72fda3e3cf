/* Powers of two by which fp32_tensor scales lines, and takes the scaling back. */
#ifndef MM_GPU_CUDA_FP32_TENSOR_SCALE_CUH
#define MM_GPU_CUDA_FP32_TENSOR_SCALE_CUH

/* Exponents of normal floats. */
enum { MM_FP32_POWER_MIN = -126, MM_FP32_POWER_MAX = 127 };

/* 2^exponent, which is a normal float. */
__device__ __forceinline__ float mm_fp32_power(int exponent) {
    return __int_as_float((exponent + 127) << 23);
}

/* The power of two that is taken out of a line: divided by it, the largest magnitude, of which these are the
 * bits, lies in [2^13, 2^14). From -162, of the smallest subnormal, to 114. */
__device__ __forceinline__ int mm_fp32_exponent(unsigned most) {
    int exponent = 0;
    if (most == 0)
        return 0;
    if (most >= 0x00800000u)
        exponent = static_cast<int>(most >> 23) - 127;
    else
        exponent = 31 - __clz(static_cast<int>(most)) - 149;
    return exponent - 13;
}

/* 2^-exponent can be 2^162, which no float holds: two factors. Neither product underflows that does not in
 * the end, nor overflows. */
struct mm_fp32_scale {
    float first;
    float second;
};

__device__ __forceinline__ mm_fp32_scale mm_fp32_scale_of(unsigned most) {
    const int exponent = -mm_fp32_exponent(most);
    return {mm_fp32_power(exponent / 2), mm_fp32_power(exponent - exponent / 2)};
}

__device__ __forceinline__ float mm_fp32_scaled(float x, const mm_fp32_scale &scale) {
    return x * scale.first * scale.second;
}

/* x·2^exponent, rounded once. Factors are powers of two, so that only the last product can round: that of a
 * result which is subnormal. */
__device__ __forceinline__ float mm_fp32_unscaled(float x, int exponent) {
    if (exponent >= MM_FP32_POWER_MIN && exponent <= MM_FP32_POWER_MAX)
        return x * mm_fp32_power(exponent);
    return scalbnf(x, exponent);
}

#endif
