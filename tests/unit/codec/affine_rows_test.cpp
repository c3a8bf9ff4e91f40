// SPDX-License-Identifier: Apache-2.0
//
// int8_row and int4_group against double arithmetic and a reader of their bytes that is written
// from the headers' words (affine_layout.hpp).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/affine_layout.hpp"
#include "support/flush_to_zero.hpp"
#include "support/random.hpp"
#include "support/varied_rows.hpp"

namespace headwise_tests {
namespace {

using headwise::int4_group;
using headwise::int8_row;

static_assert(headwise::row_codec<int8_row> && headwise::row_codec<int4_group>);
static_assert(int8_row::row_bytes(0) == 4 && int8_row::row_bytes(80) == 84);
static_assert(int4_group::row_bytes(0) == 0 && int4_group::row_bytes(1) == 20 &&
              int4_group::row_bytes(64) == 40 && int4_group::row_bytes(80) == 60);

[[nodiscard]] std::vector<std::size_t> widths_of_rows() {
  std::vector<std::size_t> result;
  for (std::size_t d = 1; d <= 130; ++d) result.push_back(d);
  result.push_back(256);
  return result;
}
template <class Codec>
[[nodiscard]] std::vector<std::byte> encoded_row(std::span<const float> row) {
  std::vector<std::byte> bytes(Codec::row_bytes(row.size()));
  Codec::encode(row, bytes.data());
  return bytes;
}
template <class Codec>
[[nodiscard]] std::vector<float> decoded_row(const std::vector<std::byte>& bytes, std::size_t d) {
  std::vector<float> row(d);
  Codec::decode(bytes.data(), row);
  return row;
}
[[nodiscard]] bool same_row_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// 1. a step is no larger than stated  2. an element is within half a step
// 3. and decodes to what the bytes say, without a rounding
template <class Codec>
void expect_within_bound(const std::vector<float>& row) {
  using layout = affine_layout<Codec>;
  const std::size_t d = row.size();
  const std::vector<std::byte> bytes = encoded_row<Codec>(row);
  const std::vector<float> read = decoded_row<Codec>(bytes, d);
  for (std::size_t i = 0; i < d; ++i) {
    const std::size_t first = i / layout::shared(d) * layout::shared(d);
    const auto group = std::span(row).subspan(first, std::min(layout::shared(d), d - first));
    const read_element element = element_at<Codec>(bytes.data(), d, i);
    ASSERT_LE(element.step.scale, step_bound(group, layout::top)) << d << ' ' << i;  // 1
    ASSERT_NEAR(double{read[i]}, double{row[i]}, element.step.scale / 2 * (1 + 1e-9))
        << d << ' ' << i;                                                     // 2
    ASSERT_EQ(double{read[i]}, element.value()) << d << ' ' << i;             // 3
    ASSERT_FALSE(read[i] == 0.0F && std::signbit(read[i])) << d << ' ' << i;  // one zero only
  }
}
template <class Codec>
void expect_varied_rows_within_bound() {
  random_source random(21);
  for (const std::size_t d : widths_of_rows())
    for (int i = 0; i < 60; ++i) {
      const std::vector<float> row = varied_row(random, d);
      ASSERT_NO_FATAL_FAILURE(expect_within_bound<Codec>(row)) << Codec::name << ' ' << d;
      // What was decoded is a row as any other: encoded again it moves by half a step at most.
      ASSERT_NO_FATAL_FAILURE(
          expect_within_bound<Codec>(decoded_row<Codec>(encoded_row<Codec>(row), d)));
    }
}
TEST(affine_rows, errors_are_within_half_a_step) {
  expect_varied_rows_within_bound<int8_row>();
  expect_varied_rows_within_bound<int4_group>();
}

// Whole steps, with both the lowest code and the highest one in use, come back exactly, and then
// are the same bytes again. No scale but the one they were made with does that.
template <class Codec>
void expect_whole_steps_exact() {
  using layout = affine_layout<Codec>;
  random_source random(22);
  for (const std::size_t d : {2U, 31U, 32U, 34U, 64U, 66U, 80U, 130U})
    for (int round = 0; round < 200; ++round) {
      std::vector<float> row(d);
      std::vector<int> codes(d);
      for (std::size_t first = 0; first < d; first += layout::shared(d)) {
        const double scale =
            std::ldexp(128.0 + random.below(128), static_cast<int>(random.below(220)) - 120);
        const int zero = static_cast<int>(random.below(64'768)) - 32'256;
        const std::size_t end = std::min(d, first + layout::shared(d));
        for (std::size_t i = first; i < end; ++i) {
          codes[i] = static_cast<int>(random.below(layout::top + 1));
          if (i == first) codes[i] = 0;
          if (i == first + 1) codes[i] = layout::top;
          row[i] = static_cast<float>(scale * (codes[i] - zero));
        }
      }
      const std::vector<std::byte> bytes = encoded_row<Codec>(row);
      ASSERT_TRUE(same_row_bits(decoded_row<Codec>(bytes, d), row)) << Codec::name << ' ' << d;
      ASSERT_EQ(encoded_row<Codec>(decoded_row<Codec>(bytes, d)), bytes);
      for (std::size_t i = 0; i < d; ++i)
        ASSERT_EQ(element_at<Codec>(bytes.data(), d, i).code, codes[i]);
    }
}
TEST(affine_rows, whole_steps_are_exact) {
  expect_whole_steps_exact<int8_row>();
  expect_whole_steps_exact<int4_group>();
}

// The next scale has to serve a range that is more than whole steps by less than a float shows: the
// ends lie half a step from a code, so not even that much is to spare.
template <class Codec>
void expect_range_just_over() {
  const float half = 0.5F * float{affine_layout<Codec>::top};
  const float above = std::nextafter(half, 1000.0F);
  ASSERT_NO_FATAL_FAILURE(expect_within_bound<Codec>({-half, 0.0F, above}));
  ASSERT_NO_FATAL_FAILURE(expect_within_bound<Codec>({half, 0.0F, -above}));
}
TEST(affine_rows, a_range_just_over_whole_steps) {
  expect_range_just_over<int8_row>();
  expect_range_just_over<int4_group>();
}

// 1. any alignment  2. nothing else is touched  3. every byte of the row is written, whatever was
// there, and only once decided: the same row is the same bytes
template <class Codec>
void expect_rows_keep_to_themselves() {
  random_source random(23);
  for (const std::size_t d : widths_of_rows()) {
    const std::vector<float> row = varied_row(random, d);
    const std::vector<std::byte> expected = encoded_row<Codec>(row);
    ASSERT_EQ(expected.size(), affine_layout<Codec>::row_bytes(d));
    for (std::size_t offset = 0; offset < 8; ++offset)
      for (const std::byte before : {std::byte{0}, std::byte{0xa5}, std::byte{0xff}}) {
        std::vector<std::byte> memory(offset + expected.size() + 8, before);
        Codec::encode(row, memory.data() + offset);
        ASSERT_EQ(std::memcmp(memory.data() + offset, expected.data(), expected.size()), 0);  // 3
        for (std::size_t i = 0; i < memory.size(); ++i)
          if (i < offset || i >= offset + expected.size()) {
            ASSERT_EQ(memory[i], before);  // 2
          }
        std::vector<float> out(d + 2, -9.0F);
        Codec::decode(memory.data() + offset, {out.data() + 1, d});
        ASSERT_EQ(out.front(), -9.0F);
        ASSERT_EQ(out.back(), -9.0F);
        ASSERT_EQ(std::memcmp(out.data() + 1, decoded_row<Codec>(expected, d).data(), 4 * d),
                  0);  // 1
      }
  }
}
TEST(affine_rows, keep_to_themselves) {
  expect_rows_keep_to_themselves<int8_row>();
  expect_rows_keep_to_themselves<int4_group>();
}

// What is no finite number poisons all that shares its step, and nothing else.
template <class Codec>
void expect_poison_stays() {
  using layout = affine_layout<Codec>;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  random_source random(24);
  for (const std::size_t d : {1U, 5U, 32U, 33U, 64U, 80U, 128U})
    for (std::size_t at = 0; at < d; ++at)
      for (const float poison :
           {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(),
            std::bit_cast<float>(0x7f800001U), std::bit_cast<float>(0xff800001U)}) {
        std::vector<float> row = random.numbers(d);
        const std::vector<float> clean = decoded_row<Codec>(encoded_row<Codec>(row), d);
        row[at] = poison;
        const std::vector<float> read = decoded_row<Codec>(encoded_row<Codec>(row), d);
        for (std::size_t i = 0; i < d; ++i) {
          if (i / layout::shared(d) == at / layout::shared(d)) {
            ASSERT_TRUE(std::isnan(read[i])) << Codec::name << ' ' << d << ' ' << at << ' ' << i;
          } else {
            ASSERT_EQ(read[i], clean[i]) << Codec::name << ' ' << d << ' ' << at << ' ' << i;
          }
        }
      }
}
TEST(affine_rows, poison_stays_in_its_group) {
  expect_poison_stays<int8_row>();
  expect_poison_stays<int4_group>();
}

// Beyond the stated bound, up to the largest float, an element may become an infinity of its sign,
// but no NaN.
template <class Codec>
void expect_largest_floats() {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const std::vector<float>& row :
       {std::vector<float>{-largest, 0.0F, largest}, std::vector<float>(40, largest),
        std::vector<float>(40, -largest), std::vector<float>{-3e38F, 3e38F, 1e38F, -2e38F},
        std::vector<float>{3e38F, largest}}) {
    const std::size_t d = row.size();
    const std::vector<std::byte> bytes = encoded_row<Codec>(row);
    const std::vector<float> read = decoded_row<Codec>(bytes, d);
    for (std::size_t i = 0; i < d; ++i) {
      const double step = element_at<Codec>(bytes.data(), d, i).step.scale;
      if (std::isinf(read[i])) {
        EXPECT_GT(std::abs(double{row[i]}) + step, double{largest});
        EXPECT_EQ(std::signbit(read[i]), std::signbit(row[i]));
      } else {
        EXPECT_NEAR(double{read[i]}, double{row[i]}, step / 2 * (1 + 1e-9));
      }
    }
  }
}
TEST(affine_rows, largest_floats) {
  expect_largest_floats<int8_row>();
  expect_largest_floats<int4_group>();
}

template <class Codec>
void expect_the_same_when_flushing() {
  random_source random(25);
  for (int i = 0; i < 3'000; ++i) {
    std::vector<float> row = varied_row(random, 1 + random.below(70));
    if (random.one_in(2))  // small ones among others
      for (float& x : row)
        if (random.one_in(2)) x = std::bit_cast<float>(random.bits() & 0x80ffffffU);
    // A range that is a whole scale, or just more if the small element counts.
    if (i < 20) row = {-0x1p-130F, std::ldexp(float{affine_layout<Codec>::top}, i - 124)};
    const std::vector<std::byte> expected = encoded_row<Codec>(row);
    const std::vector<float> expected_read = decoded_row<Codec>(expected, row.size());
    std::vector<std::byte> bytes(expected.size());
    std::vector<float> read(row.size());
    {
      const flush_to_zero mode;
      Codec::encode(row, bytes.data());
      Codec::decode(bytes.data(), read);
    }
    ASSERT_EQ(bytes, expected) << Codec::name << " row " << i;
    ASSERT_TRUE(same_row_bits(read, expected_read)) << Codec::name << " row " << i;
    ASSERT_NO_FATAL_FAILURE(expect_within_bound<Codec>(row));
  }
}
TEST(affine_rows, are_the_same_where_small_floats_are_flushed) {
  if (!flush_to_zero::is_possible()) GTEST_SKIP() << "no such mode is known of this processor";
  expect_the_same_when_flushing<int8_row>();
  expect_the_same_when_flushing<int4_group>();
}

// Documented: with one channel far away, the 31 beside it in four bits are one constant.
TEST(affine_rows, an_outlier_costs_its_group_alone) {
  random_source random(26);
  std::vector<float> row = random.numbers(64);
  row[5] = 600.0F;
  const std::vector<float> read = decoded_row<int4_group>(encoded_row<int4_group>(row), 64);
  EXPECT_NEAR(read[5], 600.0F, 602.0 / 15 / 2 * 1.008);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(read[i], read[i == 5 ? 5 : 0]) << i;
  for (std::size_t i = 32; i < 64; ++i) EXPECT_NEAR(read[i], row[i], 2.0 / 15 / 2 * 1.008) << i;
}

}  // namespace
}  // namespace headwise_tests
