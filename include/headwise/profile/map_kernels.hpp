// SPDX-License-Identifier: Apache-2.0
//
// map_kernels: the profiler's loops over the row of a map, for each element type and each width of
// vector that a processor may have (map_kernels-inl.hpp): what a row holds, and its weights,
// scaled, added to the keys' masses. All is added in double, and the bits of every result are the
// same whatever the width.
//
//   the sum of the visible weights, and what must not be there     scan, O(keys)
//   mass[key] += scale * weight of each visible key                add,  O(visible keys)
//
// A row's sum: sixteen lanes, lane i of the keys i, i + 16, ... in order; then the lanes by halves.
// mass: [keys rounded up to sixteen]. Pure: any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "headwise/codec/row_vectors.hpp"
#include "headwise/profile/map_weights.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

inline constexpr std::size_t weights_at_once = 16;

// An encoded row of a map. Keys from `visible` on come after the query.
struct map_row {
  const std::byte* data;
  std::size_t visible, keys;
};
struct row_scan {
  double sum;      // of the visible weights, where there is no late mass
  bool negative;   // a visible weight below 0
  bool late_mass;  // anything but 0 on a later key
};

#define HEADWISE_SIMD_TEXT "headwise/profile/map_kernels-inl.hpp"
#include "headwise/core/simd_widths-inl.hpp"

// add: the row has no late mass. The product of scale and a weight must be exact in a double.
struct map_kernels {
  row_scan (*scan)(const map_row&) noexcept;
  void (*add)(const map_row&, double scale, double* mass) noexcept;
};
[[nodiscard]] inline map_kernels map_kernels_at(weight_type type, simd_width width) noexcept {
  return with_codec_of(type, [&](auto codec) -> map_kernels {
    using codec_type = decltype(codec);
#if defined(__x86_64__)
    if (width == simd_width::avx512)
      return {simd_64::scan_row<codec_type>, simd_64::add_row<codec_type>};
    if (width == simd_width::avx2)
      return {simd_32::scan_row<codec_type>, simd_32::add_row<codec_type>};
#endif
    static_cast<void>(width);
    return {simd_16::scan_row<codec_type>, simd_16::add_row<codec_type>};
  });
}

}  // namespace detail

HEADWISE_NAMESPACE_END
