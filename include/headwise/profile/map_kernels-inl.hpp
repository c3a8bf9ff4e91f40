// SPDX-License-Identifier: Apache-2.0
//
// The profiler's loops over the row of a map, written once over a vector of HEADWISE_SIMD_BYTES
// for simd_widths-inl.hpp, which map_kernels.hpp includes; alone it is empty.
//
// Weights are read sixteen at a time and turned into doubles, lane by lane: sixteen lanes whatever
// the width, so that a sum has the same bits on every processor.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

using wide [[gnu::vector_size(HEADWISE_SIMD_BYTES)]] = double;
inline constexpr std::size_t wide_lanes = HEADWISE_SIMD_BYTES / sizeof(double);
inline constexpr std::size_t wides = weights_at_once / wide_lanes;

// Half of the lanes. Compilers make much more of __builtin_convertvector() than one instruction.
template <std::size_t First, std::size_t... I>
[[gnu::always_inline]] inline wide doubles_from(const vec& v, std::index_sequence<I...>) noexcept {
  const auto half = __builtin_shufflevector(v, v, static_cast<int>(First + I)...);
#if HEADWISE_SIMD_BYTES == 64
  return _mm512_maskz_cvtps_pd(0xff, half);
#elif HEADWISE_SIMD_BYTES == 32
  return _mm256_cvtps_pd(half);
#else
  return __builtin_convertvector(half, wide);
#endif
}
// Sixteen weights. `negative` gathers the signs of those below zero: -0 has a sign, but 0x80000000
// minus its bits has none.
template <class Codec>
[[gnu::always_inline]] inline void load_weights(const std::byte* at, wide (&weights)[wides],
                                                ints& negative) noexcept {
  constexpr auto half = std::make_index_sequence<wide_lanes>{};
#pragma GCC unroll 4
  for (std::size_t i = 0; i < wides; i += 2) {
    const vec v = load_row(Codec{}, at + Codec::row_bytes(i * wide_lanes));
    using words [[gnu::vector_size(HEADWISE_SIMD_BYTES)]] = std::uint32_t;
    const words bits = load<words>(&v);
    const words below = bits & (0x80000000U - bits);
    negative |= load<ints>(&below);
    weights[i] = doubles_from<0>(v, half);
    weights[i + 1] = doubles_from<wide_lanes>(v, half);
  }
}
// The bytes of sixteen weights from key `i` on: in the row, or in `padded` where the row ends.
template <class Codec>
[[gnu::always_inline]] inline const std::byte* weights_at(const map_row& row, std::size_t i,
                                                          std::byte* padded) noexcept {
  const std::byte* const at = row.data + Codec::row_bytes(i);
  if (row.keys - i >= weights_at_once) return at;
  std::memset(padded, 0, Codec::row_bytes(weights_at_once));
  std::memcpy(padded, at, Codec::row_bytes(row.keys - i));
  return padded;
}

[[gnu::always_inline]] inline std::uint32_t any_of(const ints& v) noexcept {
  std::int32_t any = 0;
#pragma GCC unroll 16
  for (std::size_t lane = 0; lane < lanes; ++lane) any |= v[lane];
  return static_cast<std::uint32_t>(any);
}
[[gnu::always_inline]] inline std::uint32_t any_of(const std::byte* at,
                                                   std::size_t bytes) noexcept {
  ints any = {}, rest = {};
  for (; bytes >= sizeof any; at += sizeof any, bytes -= sizeof any) any |= load<ints>(at);
  std::memcpy(&rest, at, bytes);
  return any_of(any | rest);
}

template <class Codec>
row_scan scan_row(const map_row& row) noexcept {
  std::byte padded[Codec::row_bytes(weights_at_once)];
  wide sums[wides] = {};
  ints negative = {};
  for (std::size_t i = 0; i < row.visible; i += weights_at_once) {
    wide weights[wides];
    load_weights<Codec>(weights_at<Codec>(row, i, padded), weights, negative);
#pragma GCC unroll 8
    for (std::size_t w = 0; w < wides; ++w) sums[w] += weights[w];
  }
  double lane_sums[weights_at_once];
  std::memcpy(lane_sums, sums, sizeof sums);
  for (std::size_t apart = weights_at_once / 2; apart > 0; apart /= 2)
    for (std::size_t lane = 0; lane < apart; ++lane) lane_sums[lane] += lane_sums[lane + apart];
  constexpr std::uint32_t signs = Codec::row_bytes(1) == 2 ? 0x80008000U : 0x80000000U;
  const std::uint32_t late =
      any_of(row.data + Codec::row_bytes(row.visible), Codec::row_bytes(row.keys - row.visible));
  return {lane_sums[0], any_of(negative) >> 31 != 0, (late & ~signs) != 0};
}

template <class Codec>
void add_row(const map_row& row, double scale, double* mass) noexcept {
  std::byte padded[Codec::row_bytes(weights_at_once)];
  ints negative = {};
  for (std::size_t i = 0; i < row.visible; i += weights_at_once) {
    wide weights[wides];
    load_weights<Codec>(weights_at<Codec>(row, i, padded), weights, negative);
#pragma GCC unroll 8
    for (std::size_t w = 0; w < wides; ++w) {
      double* const to = mass + i + w * wide_lanes;
      const wide sum = load<wide>(to) + scale * weights[w];
      std::memcpy(to, &sum, sizeof sum);
    }
  }
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
