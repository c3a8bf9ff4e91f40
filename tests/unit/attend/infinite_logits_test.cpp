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
constexpr position tokens_held = 200;
constexpr std::size_t head_size = 16;
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

struct outputs {
  std::vector<float> out = std::vector<float>(2 * head_size, 9.0F);
  std::vector<float> lse = std::vector<float>(2, 9.0F);
};

// Keys are beyond f16 in [first, last), so that the logits of query head 0 are -inf there. Query
// head 1 asks for another channel.
class infinite_logits : public ::testing::Test {
 protected:
  void fill(position first, position last) {
    for (position pos = 0; pos < tokens_held; ++pos) {
      std::vector<float> key(head_size, 0.0F), value(head_size, static_cast<float>(pos));
      key[0] = pos >= first && pos < last ? 70000.0F : 0.5F;
      const headwise::token next{pos};
      auto step = text.try_append({&next, 1});
      step->write({0, 0}, {key.data(), 1, head_size}, {value.data(), 1, head_size});
      std::move(*step).commit();
    }
    queries[0] = -1.0F;
    queries[head_size] = -0.5F;
  }
  [[nodiscard]] headwise::rows<const float> asked() const { return {queries.data(), 2, head_size}; }

  [[nodiscard]] outputs attended() const {
    outputs r;
    headwise::attend_scratch scratch(2, head_size, tokens_held);
    headwise::attend(text.head({0, 0}), tokens_held - 1, asked(), 1.0F,
                     {r.out.data(), 2, head_size}, r.lse, scratch);
    return r;
  }
  [[nodiscard]] outputs attended_as_chunk() const {
    outputs r;
    headwise::chunk_scratch scratch(2, head_size);
    headwise::attend_chunk(text.head({0, 0}), tokens_held - 1, {queries.data(), 1, 2 * head_size},
                           1.0F, {r.out.data(), 1, 2 * head_size}, r.lse, scratch);
    return r;
  }
  [[nodiscard]] outputs attended_in_pieces() const {
    outputs r;
    headwise::attend_scratch scratch(2, head_size, tokens_held);
    headwise::layer_partition cut(shape_of_one, tokens_held, 1, 20);
    cut.split(text, 0, tokens_held - 1);
    cut.attend(0, text, asked(), 1.0F, {r.out.data(), 2, head_size}, r.lse, scratch);
    cut.merge({r.out.data(), 2, head_size}, r.lse);
    return r;
  }
  [[nodiscard]] std::vector<outputs> all_ways() const {
    return {attended(), attended_as_chunk(), attended_in_pieces()};
  }

  headwise::cache_manager<> cache{shape_of_one, {headwise::global{}}, {}};
  headwise::cache_manager<>::sequence_type text = cache.open();
  std::vector<float> queries = std::vector<float>(2 * head_size, 0.0F);
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
    for (position pos = 0; pos < tokens_held; ++pos)
      if (pos < first || pos >= last) {
        sum += pos;
        ++count;
      }
    for (const outputs& r : all_ways()) {
      EXPECT_NEAR(r.out[0], sum / count, 1e-4 * tokens_held) << first;
      EXPECT_NEAR(r.lse[0], std::log(count) - 0.5, 1e-5) << first;
      EXPECT_NEAR(r.out[head_size], sum / count, 1e-4 * tokens_held) << first;
      EXPECT_NEAR(r.lse[1], std::log(count) - 0.25, 1e-5) << first;
    }
  }
}

TEST_F(infinite_logits, of_all_rows_give_zeros) {
  fill(0, tokens_held);
  for (const outputs& r : all_ways()) {
    EXPECT_EQ(r.out, std::vector<float>(2 * head_size, 0.0F));
    EXPECT_EQ(r.lse, std::vector<float>(2, minus_infinity));
  }
}

// A row that is no number is not hidden by them.
TEST_F(infinite_logits, do_not_hide_what_is_no_number) {
  fill(0, tokens_held);
  queries[0] = std::numeric_limits<float>::quiet_NaN();
  for (const outputs& r : all_ways()) {
    EXPECT_TRUE(std::isnan(r.out[0]));
    EXPECT_TRUE(std::isnan(r.lse[0]));
  }
}

}  // namespace
}  // namespace headwise_tests
