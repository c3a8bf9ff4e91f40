// SPDX-License-Identifier: Apache-2.0
//
// Fault cases G: softmax at its limits.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

// A lifetime is at least 1: a query always sees its own token, so no softmax is over nothing.
TEST(fault_cases, G01_a_head_without_special_tokens_sees_the_query_itself) {
  const test_policy policies[] = {special_ids({7}),
                                  headwise::special_tokens(token_classes::punctuation)};
  for (const test_policy& policy : policies) {
    engine text({1, 1, 1, 4}, {policy}, uniform_fixture());
    const outputs prefill = text.feed(5);
    for (position t = 0; t < 5; ++t) EXPECT_EQ(prefill.at(t), static_cast<float>(t));
    EXPECT_EQ(text.feed(1).last(), 5.0F);
    EXPECT_EQ(text.kept(), (positions{5}));
  }
}

// Every visible logit is -60000, where a mask of -65504 in half precision would still have weight.
TEST(fault_cases, G02_an_evicted_token_has_weight_zero) {
  fixture rows;
  rows.key = [](headwise::head_id, position, std::span<float> row) { fill(row, 200.0F); };
  rows.value = [](headwise::head_id, position pos, std::span<float> row) {
    fill(row, pos < 4 ? 1e4F : static_cast<float>(pos) / 8.0F);
  };
  rows.query = [](std::uint32_t, std::uint32_t, position, std::span<float> row) {
    fill(row, -150.0F);
  };
  rows.scale = 0.5F;  // 4 * 200 * -150 * 0.5 = -60000
  engine<headwise::f16> text({1, 1, 1, 4}, {window(2)}, rows);
  text.feed(5);
  const float decoded = text.feed(1).last();
  EXPECT_NEAR(decoded, (4.0 / 8 + 5.0 / 8) / 2, 2e-3);
  EXPECT_NEAR(decoded, text.dense(0, 0, 5, {4, 5}).values[0], 2e-3);
  engine<headwise::f16> prefill({1, 1, 1, 4}, {window(2)}, rows);
  EXPECT_EQ(prefill.feed(6).at(5), decoded);
}

TEST(fault_cases, G03_dot_products_beyond_half_precision) {
  float second_key = 30.0F;
  fixture rows;
  rows.key = [&](headwise::head_id, position pos, std::span<float> row) {
    fill(row, pos == 0 ? 30.0F : second_key);
  };
  rows.value = value_is_position();
  rows.query = [](std::uint32_t, std::uint32_t, position, std::span<float> row) {
    fill(row, 30.0F);
  };
  rows.scale = 1.0F / std::sqrt(128.0F);
  engine<headwise::f16> same({1, 1, 1, 128}, {headwise::global{}}, rows);
  EXPECT_NEAR(same.feed(2).last(), 0.5, 1e-6);
  second_key = 29.90625F;
  engine<headwise::f16> smaller({1, 1, 1, 128}, {headwise::global{}}, rows);
  const double first_weight = 1.0 / (1.0 + std::exp(-31.82));
  EXPECT_NEAR(smaller.feed(2).last(), 1.0 - first_weight, 1e-6);
}

template <class Codec>
void expect_nan_leaves_with_its_row() {
  fixture rows = uniform_fixture();
  rows.value = [](headwise::head_id, position pos, std::span<float> row) {
    fill(row, static_cast<float>(pos));
    if (pos == 3) row[1] = std::numeric_limits<float>::quiet_NaN();
  };
  engine<Codec> text({1, 1, 1, 4}, {window(2)}, rows);
  for (position pos = 0; pos < 8; ++pos) {
    const outputs got = text.feed(1);
    const double mean = pos == 0 ? 0.0 : pos - 0.5;
    for (std::size_t i = 0; i < 4; ++i) {
      if (i == 1 && (pos == 3 || pos == 4)) {
        EXPECT_TRUE(std::isnan(got.row(0)[i])) << pos;
      } else {
        EXPECT_NEAR(got.row(0)[i], mean, 1e-6) << pos << ' ' << i;
      }
    }
  }
}
TEST(fault_cases, G05_a_nan_stays_in_its_element_and_leaves_with_its_row) {
  expect_nan_leaves_with_its_row<headwise::f32>();
  expect_nan_leaves_with_its_row<headwise::f16>();
  expect_nan_leaves_with_its_row<headwise::bf16>();
}

}  // namespace
}  // namespace headwise_tests
