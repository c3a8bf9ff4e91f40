// SPDX-License-Identifier: Apache-2.0
//
// Rows decoded in registers are the same floats, bit for bit, as the codec makes of them: in every
// width, for any head_dim, at any address, and without a look at what lies beside them.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/flush_to_zero.hpp"
#include "support/random.hpp"
#include "support/varied_rows.hpp"
#include "support/vector_decoders.hpp"

namespace headwise_tests {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// A NaN may have other bits.
void expect_same_elements(std::span<const float> got, std::span<const float> expected,
                          const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::isnan(got[i]) && std::isnan(expected[i])) &&
        std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(expected[i]))
      FAIL() << what << " element " << i << " is " << got[i] << ", not " << expected[i];
}

// row: encoded.
template <class Codec>
void expect_decoded(std::span<const std::byte> row, std::size_t d, std::size_t offset) {
  // In memory that ends where the row does, which a sanitizer watches.
  const auto memory = std::make_unique<std::byte[]>(offset + row.size());
  std::memcpy(memory.get() + offset, row.data(), row.size());
  std::vector<float> expected(d), got(d);
  Codec::decode(memory.get() + offset, expected);
  for (std::size_t width = 0; const row_decoder decode : vector_decoders<Codec>()) {
    decode(memory.get() + offset, got);
    expect_same_elements(got, expected,
                         std::string(Codec::name) + ", width " + std::to_string(16 << width++) +
                             ", head_dim " + std::to_string(d));
  }
}

// Any bytes at all: every code beside every zero. Scales that an encoder writes: of no sign, and
// too small for a product to overflow.
template <class Codec>
void fill_with_noise(random_source& random, std::size_t d, std::vector<std::byte>& row) {
  for (std::byte& byte : row) byte = static_cast<std::byte>(random.bits() & 255U);
  constexpr std::size_t step_bytes = headwise::detail::affine_step::bytes;
  std::size_t steps = 0;
  if constexpr (std::same_as<Codec, headwise::int8_row>) steps = 1;
  if constexpr (std::same_as<Codec, headwise::int4_group>) steps = Codec::groups(d);
  for (std::size_t i = 0; i < steps; ++i) row[i * step_bytes + 1] &= std::byte{0x3f};
}

template <class Codec>
void expect_vectors_decode() {
  random_source random(31);
  std::vector<std::byte> row;
  for (std::size_t d = 1; d <= 256; d += d < 131 ? 1 : 25)
    for (int i = 0; i < 24; ++i) {
      row.resize(Codec::row_bytes(d));
      std::vector<float> elements = varied_row(random, d);
      if (i % 4 == 1) elements[random.below(static_cast<std::uint32_t>(d))] = not_a_number;
      if (i % 4 == 0)
        fill_with_noise<Codec>(random, d, row);
      else
        Codec::encode(elements, row.data());
      ASSERT_NO_FATAL_FAILURE(expect_decoded<Codec>(row, d, random.below(9)));
    }
}
TEST(row_vectors, f32) {
  expect_vectors_decode<headwise::f32>();
}
TEST(row_vectors, f16) {
  expect_vectors_decode<headwise::f16>();
}
TEST(row_vectors, bf16) {
  expect_vectors_decode<headwise::bf16>();
}
TEST(row_vectors, int8_row) {
  expect_vectors_decode<headwise::int8_row>();
}
TEST(row_vectors, int4_group) {
  expect_vectors_decode<headwise::int4_group>();
}

// Scalar and vectors alike, since whatever thread decodes may have set its processor so.
template <class Codec>
void expect_the_same_where_small_floats_are_flushed() {
  random_source random(32);
  std::vector<std::byte> row(Codec::row_bytes(80));
  std::vector<float> expected(80), got(80);
  for (int i = 0; i < 400; ++i) {
    Codec::encode(varied_row(random, 80), row.data());
    Codec::decode(row.data(), expected);
    for (const row_decoder decode : vector_decoders<Codec>()) {
      {
        const flush_to_zero mode;
        decode(row.data(), got);
      }
      ASSERT_NO_FATAL_FAILURE(expect_same_elements(got, expected, std::string(Codec::name)));
    }
  }
}
TEST(row_vectors, are_the_same_where_small_floats_are_flushed) {
  if (!flush_to_zero::is_possible()) GTEST_SKIP() << "no such mode is known of this processor";
  expect_the_same_where_small_floats_are_flushed<headwise::int8_row>();
  expect_the_same_where_small_floats_are_flushed<headwise::int4_group>();
}

}  // namespace
}  // namespace headwise_tests
