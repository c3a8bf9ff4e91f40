// SPDX-License-Identifier: Apache-2.0
//
// Fault case H06: one key channel that is far from all others. Steps of headwise belong to a row,
// not to a channel; so the error is what the headers say, an engine can measure it on its own keys,
// and it goes away when the row that all keys share is taken from them.
#include <cmath>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/row_error.hpp"
#include "support/affine_layout.hpp"
#include "support/decoded_fixture.hpp"
#include "support/engine.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

constexpr std::size_t outlier_tokens = 64, outlier_dim = 64, outlier_channel = 5;

// N(0, 1), but channel 5 is 600 +- 1.
[[nodiscard]] std::vector<float> keys_with_outlier() {
  random_source random(6);
  std::vector<float> keys(outlier_tokens * outlier_dim);
  for (float& x : keys) {
    const double u = (double{random.number()} + 1.0 + 0x1p-24) / 2, v = double{random.number()};
    x = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(3.14159265358979 * v));
  }
  for (std::size_t t = 0; t < outlier_tokens; ++t)
    keys[t * outlier_dim + outlier_channel] = 600.0F + random.number();
  return keys;
}
// What is left of rows when their mean is taken from each.
[[nodiscard]] std::vector<float> centred(std::vector<float> rows) {
  for (std::size_t i = 0; i < outlier_dim; ++i) {
    double mean = 0.0;
    for (std::size_t t = 0; t < outlier_tokens; ++t)
      mean += double{rows[t * outlier_dim + i]} / double{outlier_tokens};
    for (std::size_t t = 0; t < outlier_tokens; ++t)
      rows[t * outlier_dim + i] -= static_cast<float>(mean);
  }
  return rows;
}
[[nodiscard]] fixture with_keys(const std::vector<float>& keys) {
  fixture rows = random_fixture(7, 0.125F);
  rows.key = [&keys](headwise::head_id, position pos, std::span<float> row) {
    std::copy_n(keys.begin() + pos * outlier_dim, outlier_dim, row.begin());
  };
  rows.query = [fill_query = rows.query](std::uint32_t layer, std::uint32_t head, position pos,
                                         std::span<float> row) {
    fill_query(layer, head, pos, row);
    row[outlier_channel] = 0.0F;
  };
  return rows;
}

template <class Codec>
[[nodiscard]] headwise::row_error error_of(const std::vector<float>& keys) {
  return headwise::measure_row_error<Codec>({keys.data(), outlier_tokens, outlier_dim});
}
// The greatest error of the attention's output, of the last query, against the keys as given.
template <class Codec>
[[nodiscard]] double output_error(const std::vector<float>& keys) {
  engine<Codec, headwise::f32> text({1, 1, 1, outlier_dim}, {headwise::global{}}, with_keys(keys));
  const outputs got = text.feed(outlier_tokens);
  const std::vector<float> given = keys_with_outlier();
  text.set_rows(with_keys(given));
  const reference_output exact = text.dense(0, 0, outlier_tokens - 1, range(0, outlier_tokens - 1));
  double largest = 0.0;
  for (std::size_t i = 0; i < outlier_dim; ++i)
    largest = std::max(largest, std::abs(double{got.row(outlier_tokens - 1)[i]} - exact.values[i]));
  return largest;
}
// Each element within half a step of the elements that share it.
template <class Codec>
void expect_half_steps(const std::vector<float>& keys) {
  using layout = affine_layout<Codec>;
  const std::size_t shared = layout::shared(outlier_dim);
  for (std::size_t first = 0; first < keys.size(); first += outlier_dim) {
    const auto row = std::span(keys).subspan(first, outlier_dim);
    std::vector<float> read(row.begin(), row.end());
    decode_encoded<Codec>(read);
    for (std::size_t i = 0; i < outlier_dim; ++i)
      ASSERT_NEAR(read[i], row[i],
                  step_bound(row.subspan(i / shared * shared, shared), layout::top) / 2);
  }
}

template <class Codec>
void expect_outlier_shows_and_goes(double relative_with, double relative_without) {
  const std::vector<float> keys = keys_with_outlier(), moved = centred(keys);
  expect_half_steps<Codec>(keys);
  expect_half_steps<Codec>(moved);
  const headwise::row_error with = error_of<Codec>(keys), without = error_of<Codec>(moved);
  const double output_with = output_error<Codec>(keys), output_without = output_error<Codec>(moved);
  EXPECT_GT(with.relative, relative_with);
  EXPECT_LT(without.relative, relative_without);
  EXPECT_LT(output_without, output_with / 5);
  std::cout << Codec::name << ": error of an element, relative to what keys differ by, "
            << with.relative << " (largest " << with.largest << "), of the output " << output_with
            << "; without the mean row " << without.relative << " (largest " << without.largest
            << ") and " << output_without << '\n';
}
TEST(fault_cases, H06_a_channel_far_from_the_others_shows_and_can_be_moved) {
  expect_outlier_shows_and_goes<headwise::int8_row>(0.5, 0.01);
  expect_outlier_shows_and_goes<headwise::int4_group>(0.7, 0.12);
}

// As int4_group says: what is beside the channel reads back as one constant, the other group as if
// the channel were not there.
TEST(fault_cases, H06_the_group_of_the_channel_is_lost_and_no_other) {
  const std::vector<float> keys = keys_with_outlier();
  for (std::size_t t = 0; t < outlier_tokens; ++t) {
    const auto row = std::span(keys).subspan(t * outlier_dim, outlier_dim);
    std::vector<float> read(row.begin(), row.end()), second(row.begin() + 32, row.end());
    decode_encoded<headwise::int4_group>(read);
    decode_encoded<headwise::int4_group>(second);
    for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(read[i], read[i == outlier_channel ? i : 0]);
    for (std::size_t i = 32; i < 64; ++i) ASSERT_EQ(read[i], second[i - 32]);
  }
}

}  // namespace
}  // namespace headwise_tests
