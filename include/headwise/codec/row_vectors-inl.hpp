// SPDX-License-Identifier: Apache-2.0
//
// Vectors of HEADWISE_SIMD_BYTES of float, and rows of each codec decoded into them, written once
// for simd_widths-inl.hpp, which row_vectors.hpp includes; alone it is empty.
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

// Makes the compiler forget where the value comes from.
template <class V>
[[gnu::always_inline]] inline void keep_in_register(V& v) noexcept {
#if defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#else
  static_cast<void>(v);
#endif
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
// The codes of `lanes` elements of a byte each.
[[gnu::always_inline]] inline ints codes_of(int8_row, const std::byte* at) noexcept {
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
// Those of the elements i .. of an int8_row of d, as many as there are.
[[gnu::always_inline]] inline ints some_codes_of(const std::byte* row, std::size_t d,
                                                 std::size_t i) noexcept {
  std::byte padded[lanes] = {};
  std::memcpy(padded, row + affine_step::bytes + i, std::min(lanes, d - i));
  return codes_of(int8_row{}, padded);
}
// A lane holds one of the words of a group, so four codes.
[[gnu::always_inline]] inline ints words_of(const std::byte* group, std::size_t i) noexcept {
  static_cast<void>(i);
#if HEADWISE_SIMD_BYTES == 64
  const auto wide =
      _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_broadcastsi128_si256(load<__m128i>(group)));
  return load<ints>(&wide) >> ints{0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4};
#elif HEADWISE_SIMD_BYTES == 32
  const auto wide = _mm256_cvtepu16_epi32(load<__m128i>(group));
  return load<ints>(&wide);
#else
  using halves [[gnu::vector_size(8)]] = std::uint16_t;
  return __builtin_convertvector(load<halves>(group + i % 8 * 2), ints);
#endif
}

// A step in each lane: the zero above the scale.
[[gnu::always_inline]] inline ints spread(const std::byte* step) noexcept {
  std::int32_t both;
  std::memcpy(&both, step, sizeof both);
  return both - ints{};
}
[[gnu::always_inline]] inline ints zero_of(const std::byte* step) noexcept {
  return spread(step) >> 16;
}
// How elements that share a step are decoded: scale * code + offset, every operation exact for
// elements up to 2^127.
struct decoder {
  vec scale, offset;

  [[gnu::always_inline]] explicit decoder(const std::byte* step) noexcept {
    ints halves = spread(step);
    keep_in_register(halves);  // or the two would be taken apart before they are spread
    scale = float_of(halves << 16);
    offset = __builtin_convertvector(halves >> 16, vec) * -scale;
  }
  [[gnu::always_inline]] vec operator()(const ints& codes) const noexcept {
    return fma(scale, __builtin_convertvector(codes, vec), offset);
  }
};

// Elements that share a step, or are loaded together.
template <class Codec>
inline constexpr std::size_t unit = affine_codec<Codec> ? 32 : lanes;

// Elements i .. of a row of d, N vectors of them. i: a multiple of N * lanes.
template <class Codec, std::size_t N>
[[gnu::always_inline]] inline void load_vectors(const std::byte* row, std::size_t d, std::size_t i,
                                                vec (&to)[N]) noexcept {
  if constexpr (std::same_as<Codec, int8_row>) {
    const decoder decode(row);
#pragma GCC unroll 8
    for (std::size_t n = 0; n < N; ++n)
      to[n] = decode(codes_of(Codec{}, row + affine_step::bytes + i + n * lanes));
  } else if constexpr (std::same_as<Codec, int4_group>) {
    constexpr std::size_t together = std::min(N, unit<Codec> / lanes);
#pragma GCC unroll 8
    for (std::size_t n = 0; n < N; n += together) {
      const std::size_t at = i + n * lanes, group = at / Codec::group_elements;
      const decoder decode(row + group * affine_step::bytes);
      const std::byte* const codes = row + Codec::codes_at(d) + group * Codec::group_bytes;
#pragma GCC unroll 8
      for (std::size_t v = 0; v < together; ++v) {
        const std::size_t element = at % Codec::group_elements + v * lanes;
        const ints words = words_of(codes, element);
        to[n + v] = decode((words >> static_cast<int>(element / 8 * 4)) & 15);
      }
    }
  } else {
#pragma GCC unroll 8
    for (std::size_t n = 0; n < N; ++n)
      to[n] = load_row(Codec{}, row + Codec::row_bytes(i + n * lanes));
  }
}
// Elements i .. of a row of d, as many as there are; the other lanes hold any numbers. i: a
// multiple of `lanes`. A group of four bits is always stored whole.
template <class Codec>
[[gnu::always_inline]] inline vec load_some(const std::byte* row, std::size_t d,
                                            std::size_t i) noexcept {
  if (std::same_as<Codec, int4_group> || i + lanes <= d) {
    vec whole[1];
    load_vectors<Codec>(row, d, i, whole);
    return whole[0];
  }
  if constexpr (std::same_as<Codec, int8_row>) {
    return decoder(row)(some_codes_of(row, d, i));
  } else {
    return load_part<Codec>(row + Codec::row_bytes(i), d - i);
  }
}

// For those who multiply whole rows: numbers that are elements but for a factor, which all of a row
// have in common and which is left to the end. As load_vectors and load_some.
template <class Codec, std::size_t N>
[[gnu::always_inline]] inline void load_numbers(const std::byte* row, std::size_t d, std::size_t i,
                                                vec (&to)[N]) noexcept {
  if constexpr (std::same_as<Codec, int8_row>) {
    const ints zero = zero_of(row);
#pragma GCC unroll 8
    for (std::size_t n = 0; n < N; ++n)
      to[n] = __builtin_convertvector(
          codes_of(Codec{}, row + affine_step::bytes + i + n * lanes) - zero, vec);
  } else {
    load_vectors<Codec>(row, d, i, to);
  }
}
template <class Codec>
[[gnu::always_inline]] inline vec load_some_numbers(const std::byte* row, std::size_t d,
                                                    std::size_t i) noexcept {
  if constexpr (std::same_as<Codec, int8_row>) {
    return __builtin_convertvector(some_codes_of(row, d, i) - zero_of(row), vec);
  } else {
    return load_some<Codec>(row, d, i);
  }
}
template <class Codec>
[[gnu::always_inline]] inline float factor_of(const std::byte* row) noexcept {
  if constexpr (std::same_as<Codec, int8_row>)
    return float_from_bf16(affine_step::read(row).scale);
  else
    return 1.0F;
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
