// SPDX-License-Identifier: Apache-2.0
//
// Logits of -inf, as of f16 keys beyond 65,504: their rows weigh nothing, wherever they lie, and
// all ways to attend agree on it. Where all are so, out is 0 and lse -inf.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/headwise.hpp"

namespace headwise_tests {
namespace {

using headwise::position;

constexpr headwise::model_shape shape_of_one{1, 2, 1, 16};
constexpr position tokens = 200;
constexpr std::size_t width = 16;
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

struct result {
  std::vector<float> out = std::vector<float>(2 * width, 9.0F);
  std::vector<float> lse = std::vector<float>(2, 9.0F);
};

// Keys are beyond f16 in [first, last), so that the logits of query head 0 are -inf there. Query
// head 1 asks for another channel.
class infinite_logits : public ::testing::Test {
 protected:
  void fill(position first, position last) {
    for (position pos = 0; pos < tokens; ++pos) {
      std::vector<float> key(width, 0.0F), value(width, static_cast<float>(pos));
      key[0] = pos >= first && pos < last ? 70000.0F : 0.5F;
      const headwise::token next{pos};
      auto step = text.try_append({&next, 1});
      step->write({0, 0}, {key.data(), 1, width}, {value.data(), 1, width});
      std::move(*step).commit();
    }
    queries[0] = -1.0F;
    queries[width] = -0.5F;
  }
  [[nodiscard]] headwise::rows<const float> asked() const { return {queries.data(), 2, width}; }

  [[nodiscard]] result attended() const {
    result r;
    headwise::attend_scratch scratch(2, width, tokens);
    headwise::attend(text.head({0, 0}), tokens - 1, asked(), 1.0F, {r.out.data(), 2, width}, r.lse,
                     scratch);
    return r;
  }
  [[nodiscard]] result attended_as_chunk() const {
    result r;
    headwise::chunk_scratch scratch(2, width);
    headwise::attend_chunk(text.head({0, 0}), tokens - 1, {queries.data(), 1, 2 * width}, 1.0F,
                           {r.out.data(), 1, 2 * width}, r.lse, scratch);
    return r;
  }
  [[nodiscard]] result attended_in_pieces() const {
    result r;
    headwise::attend_scratch scratch(2, width, tokens);
    headwise::layer_partition cut(shape_of_one, tokens, 1, 20);
    cut.split(text, 0, tokens - 1);
    cut.attend(0, text, asked(), 1.0F, {r.out.data(), 2, width}, r.lse, scratch);
    cut.merge({r.out.data(), 2, width}, r.lse);
    return r;
  }
  [[nodiscard]] std::vector<result> all_ways() const {
    return {attended(), attended_as_chunk(), attended_in_pieces()};
  }

  headwise::cache_manager<> cache{shape_of_one, {headwise::global{}}, {}};
  headwise::cache_manager<>::sequence_type text = cache.open();
  std::vector<float> queries = std::vector<float>(2 * width, 0.0F);
};

// The outputs are the mean position of the other rows.
TEST_F(infinite_logits, weigh_nothing_wherever_they_lie) {
  for (const auto& [first, last] : {std::pair<position, position>{0, 64},
                                    {0, 130},
                                    {70, 199},
                                    {64, 128},
                                    {199, 200},
                                    {1, 200}}) {
    text = cache.open();
    fill(first, last);
    double sum = 0.0, count = 0.0;
    for (position pos = 0; pos < tokens; ++pos)
      if (pos < first || pos >= last) {
        sum += pos;
        ++count;
      }
    for (const result& r : all_ways()) {
      EXPECT_NEAR(r.out[0], sum / count, 1e-4 * tokens) << first;
      EXPECT_NEAR(r.lse[0], std::log(count) - 0.5, 1e-5) << first;
      EXPECT_NEAR(r.out[width], sum / count, 1e-4 * tokens) << first;
      EXPECT_NEAR(r.lse[1], std::log(count) - 0.25, 1e-5) << first;
    }
  }
}

TEST_F(infinite_logits, of_all_rows_give_zeros) {
  fill(0, tokens);
  for (const result& r : all_ways()) {
    EXPECT_EQ(r.out, std::vector<float>(2 * width, 0.0F));
    EXPECT_EQ(r.lse, std::vector<float>(2, minus_infinity));
  }
}

// A row that is no number is not hidden by them.
TEST_F(infinite_logits, do_not_hide_what_is_no_number) {
  fill(0, tokens);
  queries[0] = std::numeric_limits<float>::quiet_NaN();
  for (const result& r : all_ways()) {
    EXPECT_TRUE(std::isnan(r.out[0]));
    EXPECT_TRUE(std::isnan(r.lse[0]));
  }
}

}  // namespace
}  // namespace headwise_tests
