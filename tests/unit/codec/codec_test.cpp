// SPDX-License-Identifier: Apache-2.0
//
// The codecs against arithmetic of their own in double: no conversion is checked by another one.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::detail::bf16_from_float;
using headwise::detail::f16_from_float;
using headwise::detail::float_from_bf16;
using headwise::detail::float_from_f16;

static_assert(headwise::row_codec<headwise::f32>);
static_assert(headwise::row_codec<headwise::f16>);
static_assert(headwise::row_codec<headwise::bf16>);
static_assert(headwise::f32::row_bytes(80) == 320);
static_assert(headwise::f16::row_bytes(80) == 160);
static_assert(headwise::bf16::row_bytes(80) == 160);

// The value of a pattern with `exponent_bits` and `mantissa_bits`, by the definition.
double value_of(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double mantissa = bits & ((1U << mantissa_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  return exponent == 0 ? sign * std::ldexp(mantissa, 1 - bias - mantissa_bits)
                       : sign * std::ldexp(mantissa + std::ldexp(1.0, mantissa_bits),
                                           exponent - bias - mantissa_bits);
}

struct half_format {
  const char* name;
  int exponent_bits, mantissa_bits;
  std::uint16_t (*from_float)(float);
  float (*to_float)(std::uint16_t);
};
const half_format formats[] = {
    {"f16", 5, 10, [](float x) { return f16_from_float(x); },
     [](std::uint16_t x) { return float_from_f16(x); }},
    {"bf16", 8, 7, [](float x) { return bf16_from_float(x); },
     [](std::uint16_t x) { return float_from_bf16(x); }},
};

// 1. every pattern decodes to its value  2. and encodes to itself  3. NaN stays NaN
TEST(fault_cases, H11_all_half_patterns) {
  for (const half_format& format : formats)
    for (std::uint32_t bits = 0; bits < 65'536; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const double expected = value_of(bits, format.exponent_bits, format.mantissa_bits);
      const float decoded = format.to_float(half);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(decoded)) << format.name << bits;
        ASSERT_TRUE(std::isnan(format.to_float(format.from_float(decoded)))) << bits;  // 3
        continue;
      }
      ASSERT_EQ(double{decoded}, expected) << format.name << bits;                     // 1
      ASSERT_EQ(std::signbit(decoded), (bits & 0x8000U) != 0) << format.name << bits;  // 1
      ASSERT_EQ(format.from_float(decoded), half) << format.name << ' ' << bits;       // 2
    }
}

// Between two neighbours: the nearer, and the even one from the midpoint.
TEST(fault_cases, H11_halves_round_to_nearest_even) {
  for (const half_format& format : formats) {
    const std::uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
    for (std::uint32_t bits = 0; bits + 1 < infinity; ++bits) {
      const float low = format.to_float(static_cast<std::uint16_t>(bits));
      const float high = format.to_float(static_cast<std::uint16_t>(bits + 1));
      const float middle = low + (high - low) / 2;
      // Exact as long as float has a value there, which is not so for the smallest of bf16.
      if (double{middle} * 2 != double{low} + double{high}) continue;
      const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      ASSERT_EQ(format.from_float(middle), even) << format.name << ' ' << bits;
      ASSERT_EQ(format.from_float(-middle), even | 0x8000U);
      ASSERT_EQ(format.from_float(std::nextafter(middle, low)), bits);
      ASSERT_EQ(format.from_float(std::nextafter(middle, high)), bits + 1);
    }
  }
}

TEST(fault_cases, H11_halves_at_their_limits) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_from_f16(f16_from_float(65519.996F)), 65504.0F);
  EXPECT_EQ(float_from_f16(f16_from_float(65520.0F)), infinity);
  EXPECT_EQ(float_from_f16(f16_from_float(-65520.0F)), -infinity);
  EXPECT_EQ(float_from_f16(f16_from_float(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(f16_from_float(0x1p-25F), 0U);
  EXPECT_EQ(f16_from_float(std::nextafter(0x1p-25F, 1.0F)), 1U);
  EXPECT_EQ(f16_from_float(std::numeric_limits<float>::denorm_min()), 0U);
  EXPECT_EQ(f16_from_float(-0.0F), 0x8000U);
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::max()), 0x7f80U);
  EXPECT_EQ(bf16_from_float(infinity), 0x7f80U);
  const float low_bits_only = std::bit_cast<float>(0x7f800001U);
  EXPECT_TRUE(std::isnan(float_from_f16(f16_from_float(low_bits_only))));
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(low_bits_only))));
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(-low_bits_only))));
}

// Random floats of every magnitude against the stated error bounds.
TEST(codec, error_is_within_its_bound) {
  random_source random(5);
  for (int i = 0; i < 300'000; ++i) {
    const float x = std::bit_cast<float>(random.bits());
    if (!std::isfinite(x)) continue;
    const double size = std::abs(double{x});
    const double f16_error = std::abs(double{float_from_f16(f16_from_float(x))} - double{x});
    const double bf16_error = std::abs(double{float_from_bf16(bf16_from_float(x))} - double{x});
    if (size <= 65504.0) {
      EXPECT_LE(f16_error, std::max(size * 0x1p-11, 0x1p-25)) << x;
    }
    if (size >= 0x1p-126 && size < 0x1.fep127) {
      EXPECT_LE(bf16_error, size * 0x1p-8) << x;
    }
  }
}

// A row is a function of its own elements, at any alignment, and nothing else is touched.
template <class Codec>
void expect_rows_round_trip() {
  random_source random(6);
  for (const std::size_t d : {1U, 2U, 7U, 16U, 33U, 64U, 80U, 129U})
    for (std::size_t offset = 0; offset < 5; ++offset) {
      const std::vector<float> in = random.numbers(d);
      const std::size_t bytes = Codec::row_bytes(d);
      std::vector<std::byte> memory(bytes + offset + 8, std::byte{0x5a});
      std::vector<float> out(d + 1, -9.0F);
      Codec::encode(in, memory.data() + offset);
      Codec::decode(memory.data() + offset, {out.data(), d});
      for (std::size_t i = 0; i < d; ++i) EXPECT_NEAR(out[i], in[i], 0x1p-8) << Codec::name;
      EXPECT_EQ(out[d], -9.0F);
      for (std::size_t i = 0; i < memory.size(); ++i) {
        if (i < offset || i >= offset + bytes) {
          EXPECT_EQ(memory[i], std::byte{0x5a});
        }
      }
      std::vector<std::byte> again(bytes);
      Codec::encode({out.data(), d}, again.data());
      EXPECT_EQ(std::memcmp(again.data(), memory.data() + offset, bytes), 0) << Codec::name;
    }
}
TEST(codec, rows_round_trip) {
  expect_rows_round_trip<headwise::f32>();
  expect_rows_round_trip<headwise::f16>();
  expect_rows_round_trip<headwise::bf16>();
}

TEST(codec, f32_is_exact) {
  random_source random(7);
  std::vector<float> in(1000), out(1000);
  for (float& x : in) x = std::bit_cast<float>(random.bits());
  std::vector<std::byte> row(headwise::f32::row_bytes(in.size()));
  headwise::f32::encode(in, row.data());
  headwise::f32::decode(row.data(), out);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), row.size()), 0);
}

}  // namespace
}  // namespace headwise_tests
