// SPDX-License-Identifier: Apache-2.0
//
// Opens namespace simd_N for vectors of HEADWISE_SIMD_BYTES = N bytes; what follows is compiled for
// the processors that have them, whatever the options of the unit. simd_end-inl.hpp closes it.
#ifdef HEADWISE_SIMD_BYTES

#if HEADWISE_SIMD_BYTES == 16
namespace simd_16 {
#elif HEADWISE_SIMD_BYTES == 32
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
namespace simd_32 {
#elif HEADWISE_SIMD_BYTES == 64
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")
#endif
namespace simd_64 {
#endif

#endif  // HEADWISE_SIMD_BYTES
