/* Powers of ten: floor(10^power / 2^e), where e makes the result 64 bits long. tests/unit/api/number.c uses
 * each entry. */
#include "api/number/ten.h"

const uint64_t mm_tens[MM_TEN_MAX - MM_TEN_MIN + 1] = {
    0x86ccbb52ea94baea, 0xa87fea27a539e9a5, 0xd29fe4b18e88640e, 0x83a3eeeef9153e89, /* from 1e-65 */
    0xa48ceaaab75a8e2b, 0xcdb02555653131b6, 0x808e17555f3ebf11, 0xa0b19d2ab70e6ed6, /* from 1e-61 */
    0xc8de047564d20a8b, 0xfb158592be068d2e, 0x9ced737bb6c4183d, 0xc428d05aa4751e4c, /* from 1e-57 */
    0xf53304714d9265df, 0x993fe2c6d07b7fab, 0xbf8fdb78849a5f96, 0xef73d256a5c0f77c, /* from 1e-53 */
    0x95a8637627989aad, 0xbb127c53b17ec159, 0xe9d71b689dde71af, 0x9226712162ab070d, /* from 1e-49 */
    0xb6b00d69bb55c8d1, 0xe45c10c42a2b3b05, 0x8eb98a7a9a5b04e3, 0xb267ed1940f1c61c, /* from 1e-45 */
    0xdf01e85f912e37a3, 0x8b61313bbabce2c6, 0xae397d8aa96c1b77, 0xd9c7dced53c72255, /* from 1e-41 */
    0x881cea14545c7575, 0xaa242499697392d2, 0xd4ad2dbfc3d07787, 0x84ec3c97da624ab4, /* from 1e-37 */
    0xa6274bbdd0fadd61, 0xcfb11ead453994ba, 0x81ceb32c4b43fcf4, 0xa2425ff75e14fc31, /* from 1e-33 */
    0xcad2f7f5359a3b3e, 0xfd87b5f28300ca0d, 0x9e74d1b791e07e48, 0xc612062576589dda, /* from 1e-29 */
    0xf79687aed3eec551, 0x9abe14cd44753b52, 0xc16d9a0095928a27, 0xf1c90080baf72cb1, /* from 1e-25 */
    0x971da05074da7bee, 0xbce5086492111aea, 0xec1e4a7db69561a5, 0x9392ee8e921d5d07, /* from 1e-21 */
    0xb877aa3236a4b449, 0xe69594bec44de15b, 0x901d7cf73ab0acd9, 0xb424dc35095cd80f, /* from 1e-17 */
    0xe12e13424bb40e13, 0x8cbccc096f5088cb, 0xafebff0bcb24aafe, 0xdbe6fecebdedd5be, /* from 1e-13 */
    0x89705f4136b4a597, 0xabcc77118461cefc, 0xd6bf94d5e57a42bc, 0x8637bd05af6c69b5, /* from 1e-9 */
    0xa7c5ac471b478423, 0xd1b71758e219652b, 0x83126e978d4fdf3b, 0xa3d70a3d70a3d70a, /* from 1e-5 */
    0xcccccccccccccccc, 0x8000000000000000, 0xa000000000000000, 0xc800000000000000, /* from 1e-1 */
    0xfa00000000000000, 0x9c40000000000000, 0xc350000000000000, 0xf424000000000000, /* from 1e3 */
    0x9896800000000000, 0xbebc200000000000, 0xee6b280000000000, 0x9502f90000000000, /* from 1e7 */
    0xba43b74000000000, 0xe8d4a51000000000, 0x9184e72a00000000, 0xb5e620f480000000, /* from 1e11 */
    0xe35fa931a0000000, 0x8e1bc9bf04000000, 0xb1a2bc2ec5000000, 0xde0b6b3a76400000, /* from 1e15 */
    0x8ac7230489e80000, 0xad78ebc5ac620000, 0xd8d726b7177a8000, 0x878678326eac9000, /* from 1e19 */
    0xa968163f0a57b400, 0xd3c21bcecceda100, 0x84595161401484a0, 0xa56fa5b99019a5c8, /* from 1e23 */
    0xcecb8f27f4200f3a, 0x813f3978f8940984, 0xa18f07d736b90be5, 0xc9f2c9cd04674ede, /* from 1e27 */
    0xfc6f7c4045812296, 0x9dc5ada82b70b59d, 0xc5371912364ce305, 0xf684df56c3e01bc6, /* from 1e31 */
    0x9a130b963a6c115c, 0xc097ce7bc90715b3, 0xf0bdc21abb48db20, 0x96769950b50d88f4, /* from 1e35 */
    0xbc143fa4e250eb31, 0xeb194f8e1ae525fd, 0x92efd1b8d0cf37be, 0xb7abc627050305ad, /* from 1e39 */
    0xe596b7b0c643c719, 0x8f7e32ce7bea5c6f, 0xb35dbf821ae4f38b, 0xe0352f62a19e306e, /* from 1e43 */
    0x8c213d9da502de45, 0xaf298d050e4395d6, 0xdaf3f04651d47b4c, 0x88d8762bf324cd0f, /* from 1e47 */
    0xab0e93b6efee0053, 0xd5d238a4abe98068, 0x85a36366eb71f041,                     /* from 1e51 */
};
