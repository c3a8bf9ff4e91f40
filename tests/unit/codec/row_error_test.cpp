// SPDX-License-Identifier: Apache-2.0
#include "headwise/codec/row_error.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int8_row.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::measure_row_error;
using headwise::row_error;
using measured_rows = headwise::rows<const float>;

// Keeps whole numbers: its error is known.
struct whole_numbers {
  static constexpr std::string_view name = "whole_numbers";
  static constexpr std::size_t row_bytes(std::size_t d) noexcept { return 4 * d; }
  static void encode(std::span<const float> in, std::byte* dst) noexcept {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float whole = std::floor(in[i]);
      headwise::f32::encode({&whole, 1}, dst + 4 * i);
    }
  }
  static void decode(const std::byte* src, std::span<float> out) noexcept {
    headwise::f32::decode(src, out);
  }
};

TEST(row_error, is_what_the_header_says) {
  // Errors: 0.5, 0, 0, 0.25; distances from the mean of a channel: 1.25 and 1.625, twice each.
  const std::vector<float> elements{1.5F, 7.0F, -99.0F, 4.0F, 10.25F, -99.0F};
  const row_error error =
      measure_row_error<whole_numbers>(measured_rows(elements.data(), 2, 2, 3));  // not the third
  EXPECT_DOUBLE_EQ(error.largest, 0.5);
  EXPECT_DOUBLE_EQ(error.rms, std::sqrt((0.25 + 0.0625) / 4));
  EXPECT_DOUBLE_EQ(error.relative,
                   std::sqrt((0.25 + 0.0625) / (2 * 1.25 * 1.25 + 2 * 1.625 * 1.625)));
}

TEST(row_error, does_not_see_what_all_rows_share) {
  random_source random(41);
  std::vector<float> elements = random.numbers(40 * 8);
  const auto measure = [&] { return measure_row_error<headwise::f16>({elements.data(), 40, 8}); };
  const double near = measure().relative;
  for (std::size_t i = 0; i < elements.size(); i += 8) elements[i] += 1024.0F;
  // At 1024 a step of f16 is 1, as large as what the channel varies by.
  EXPECT_GT(measure().relative, 100 * near);
  for (std::size_t i = 0; i < elements.size(); i += 8) elements[i] -= 1024.0F;
  EXPECT_NEAR(measure().relative, near, 0.1 * near);
}

TEST(row_error, at_its_limits) {
  const std::vector<float> equal(64, 0.3F);
  const auto exact = measure_row_error<headwise::f32>({equal.data(), 4, 16});
  EXPECT_EQ(exact.largest, 0.0);
  EXPECT_EQ(exact.relative, 0.0);
  const auto rounded = measure_row_error<headwise::f16>({equal.data(), 4, 16});
  EXPECT_GT(rounded.rms, 0.0);
  EXPECT_EQ(rounded.relative, std::numeric_limits<double>::infinity());
  EXPECT_EQ(measure_row_error<headwise::f16>({equal.data(), 0, 16}).rms, 0.0);
  EXPECT_EQ(measure_row_error<headwise::f16>({equal.data(), 4, 0}).rms, 0.0);

  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 7e4F,  // infinite as f16
                          std::numeric_limits<float>::infinity()}) {
    std::vector<float> elements(64, 1.0F);
    elements[37] = bad;
    const auto error = measure_row_error<headwise::f16>({elements.data(), 4, 16});
    EXPECT_TRUE(std::isnan(error.largest) && std::isnan(error.rms) && std::isnan(error.relative));
  }
}

}  // namespace
}  // namespace headwise_tests
