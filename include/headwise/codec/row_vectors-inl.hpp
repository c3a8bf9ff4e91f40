// SPDX-License-Identifier: Apache-2.0
//
// Vectors of HEADWISE_SIMD_BYTES of float, and rows of each codec decoded into them, written once;
// row_vectors.hpp defines the width and includes this text, width by width; alone it is empty.
// Helpers are forced inline, since a vector must not be an argument of a real call.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

#if HEADWISE_SIMD_BYTES == 64 || defined(__aarch64__)
inline constexpr std::size_t registers = 32;
#else
inline constexpr std::size_t registers = 16;
#endif
inline constexpr std::size_t lanes = HEADWISE_SIMD_BYTES / sizeof(float);
using vec [[gnu::vector_size(HEADWISE_SIMD_BYTES)]] = float;
using ints [[gnu::vector_size(HEADWISE_SIMD_BYTES)]] = std::int32_t;
using quad [[gnu::vector_size(16)]] = float;

template <class V>
[[gnu::always_inline]] inline V load(const void* from) noexcept {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
[[gnu::always_inline]] inline void store(float* to, const vec& v) noexcept {
  std::memcpy(to, &v, sizeof(v));
}
[[gnu::always_inline]] inline vec broadcast(float x) noexcept {
  return x - vec{};
}
[[gnu::always_inline]] inline ints bits_of(const vec& v) noexcept {
  return load<ints>(&v);
}
[[gnu::always_inline]] inline vec float_of(const ints& v) noexcept {
  return load<vec>(&v);
}

// a * b + c, rounded once where the processor can.
[[gnu::always_inline]] inline vec fma(const vec& a, const vec& b, const vec& c) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  return _mm512_fmadd_ps(a, b, c);
#elif HEADWISE_SIMD_BYTES == 32
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

// The elements of a row from `at` on, as floats.
[[gnu::always_inline]] inline vec load_row(f32, const std::byte* at) noexcept {
  return load<vec>(at);
}
[[gnu::always_inline]] inline vec load_row(bf16, const std::byte* at) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  const auto wide = _mm512_maskz_cvtepu16_epi32(0xffff, load<__m256i>(at));
#elif HEADWISE_SIMD_BYTES == 32
  const auto wide = _mm256_cvtepu16_epi32(load<__m128i>(at));
#else
  using halves [[gnu::vector_size(8)]] = std::uint16_t;
  const auto wide = __builtin_convertvector(load<halves>(at), ints);
#endif
  return float_of(load<ints>(&wide) << 16);
}
#if HEADWISE_SIMD_BYTES == 16 && !defined(__aarch64__)
// As float_from_f16() in codec/f16.hpp; a call, since it is long and few processors need it.
[[gnu::noinline]] inline vec load_row(f16, const std::byte* at) noexcept {
  using halves [[gnu::vector_size(8)]] = std::uint16_t;
  const ints half = __builtin_convertvector(load<halves>(at), ints);
  const ints shifted = (half & 0x7fff) << 13, exponent = shifted & 0x0f800000;
  const ints normal = shifted + (112 << 23) + ((exponent == 0x0f800000) & (112 << 23));
  const vec subnormal =
      float_of((shifted & 0x007fffff) | (113 << 23)) - float_of(ints{} + (113 << 23));
  const ints tiny = exponent == 0;
  return float_of(((half & 0x8000) << 16) | (tiny & bits_of(subnormal)) | (~tiny & normal));
}
#else
[[gnu::always_inline]] inline vec load_row(f16, const std::byte* at) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  return _mm512_maskz_cvtph_ps(0xffff, load<__m256i>(at));
#elif HEADWISE_SIMD_BYTES == 32
  return _mm256_cvtph_ps(load<__m128i>(at));
#else
  return vcvt_f32_f16(load<float16x4_t>(at));
#endif
}
#endif
// The last `count` elements, below `lanes`, and zeros. Out of line: it is rare, and there are many.
template <class Codec>
[[gnu::noinline]] void decode_part(const std::byte* at, std::size_t count, float* to) noexcept {
  std::memset(to, 0, sizeof(vec));
  Codec::decode(at, {to, count});
}
template <class Codec>
[[gnu::always_inline]] inline vec load_part(const std::byte* at, std::size_t count) noexcept {
  float padded[lanes];
  decode_part<Codec>(at, count, padded);
  return load<vec>(padded);
}
// Four elements, or as many as there are lanes, that are codes: one byte each, or 4 bits from
// `shift` on of two bytes each.
[[gnu::always_inline]] inline ints load_bytes(const std::byte* at) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  const auto wide = _mm512_maskz_cvtepu8_epi32(0xffff, load<__m128i>(at));
#elif HEADWISE_SIMD_BYTES == 32
  const auto wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
#else
  using bytes [[gnu::vector_size(4)]] = std::uint8_t;
  const auto wide = __builtin_convertvector(load<bytes>(at), ints);
#endif
  return load<ints>(&wide);
}
// Elements i .. of a group of 32.
[[gnu::always_inline]] inline ints load_nibbles(const std::byte* group, std::size_t i) noexcept {
  const auto shift = static_cast<int>(i / 8 * 4);
#if HEADWISE_SIMD_BYTES == 64
  const auto words =
      _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_broadcastsi128_si256(load<__m128i>(group)));
  const ints by = {0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4};
  return (load<ints>(&words) >> (by + shift)) & 15;
#elif HEADWISE_SIMD_BYTES == 32
  const auto words = _mm256_cvtepu16_epi32(load<__m128i>(group));
  return (load<ints>(&words) >> shift) & 15;
#else
  using halves [[gnu::vector_size(8)]] = std::uint16_t;
  const ints words = __builtin_convertvector(load<halves>(group + i % 8 * 2), ints);
  return (words >> shift) & 15;
#endif
}
// scale * (code - zero); every operation is exact.
[[gnu::always_inline]] inline vec apply_step(const std::byte* step, const ints& codes) noexcept {
  std::int32_t both;  // the zero above the scale
  std::memcpy(&both, step, sizeof both);
  const ints halves = both - ints{};
  const vec scale = float_of(halves << 16);
  const vec zero = __builtin_convertvector(halves >> 16, vec);
  return fma(scale, __builtin_convertvector(codes, vec), -(scale * zero));
}

// Elements i .. i + count of a row of d, and zeros (or what a row holds behind its end) in the
// other lanes. i: a multiple of `lanes`.
template <class Codec>
[[gnu::always_inline]] inline vec load_at(const std::byte* row, std::size_t d, std::size_t i,
                                          std::size_t count) noexcept {
  if constexpr (std::same_as<Codec, int4_group>) {
    const std::size_t group = i / Codec::group_elements;
    const std::byte* const codes = row + Codec::codes_at(d) + group * Codec::group_bytes;
    return apply_step(row + group * affine_step::bytes,
                      load_nibbles(codes, i % Codec::group_elements));
  } else if constexpr (std::same_as<Codec, int8_row>) {
    const std::byte* const codes = row + affine_step::bytes + i;
    if (count == lanes) return apply_step(row, load_bytes(codes));
    std::byte padded[lanes] = {};
    std::memcpy(padded, codes, count);
    return apply_step(row, load_bytes(padded));
  } else {
    const std::byte* const at = row + Codec::row_bytes(i);
    return count == lanes ? load_row(Codec{}, at) : load_part<Codec>(at, count);
  }
}
// Elements that are decoded together, since they share what is before them.
template <class Codec>
inline constexpr std::size_t unit = affine_codec<Codec> ? 32 : lanes;

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
