// SPDX-License-Identifier: Apache-2.0
//
// The widths of vector that a processor may have, and which of them this one has: asked at run
// time, so that a build without -march takes the best. O(1). Any number of threads.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN

// The widths in bytes. `portable` is what every processor of the architecture has (SSE2, NEON).
enum class simd_width : std::uint8_t { portable = 16, avx2 = 32, avx512 = 64 };

// Whether this processor and its operating system run a width. Ask once, not for each call.
[[nodiscard]] inline bool has_simd(simd_width width) noexcept {
#if defined(__x86_64__)
  if (width == simd_width::avx512)
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && has_simd(simd_width::avx2);
  if (width == simd_width::avx2) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
           __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }
#endif
  return width == simd_width::portable;
}
[[nodiscard]] inline simd_width widest_simd() noexcept {
  if (has_simd(simd_width::avx512)) return simd_width::avx512;
  return has_simd(simd_width::avx2) ? simd_width::avx2 : simd_width::portable;
}

HEADWISE_NAMESPACE_END
