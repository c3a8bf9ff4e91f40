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
template <class Codec>
[[gnu::always_inline]] inline vec load_at(const std::byte* row, std::size_t i,
                                          std::size_t count) noexcept {
  const std::byte* const at = row + Codec::row_bytes(i);
  return count == lanes ? load_row(Codec{}, at) : load_part<Codec>(at, count);
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
