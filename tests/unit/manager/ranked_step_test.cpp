// SPDX-License-Identifier: Apache-2.0
//
// Steps of a head that ranks: the order of write, attend and observe, and what is out of order.
#include <gtest/gtest.h>

#include "support/engine.hpp"

namespace headwise_tests {
namespace {

using headwise::heavy_hitters;
using headwise::union_of;

class ranked_step : public testing::Test {
 protected:
  using cache = headwise::cache_manager<test_policies, headwise::f32>;

  [[nodiscard]] cache::step_type opened(std::size_t count) {
    return text
        .try_append(headwise::token_classifier(0).tokens(
            std::span<const std::int32_t>(std::vector<std::int32_t>(count, 0)), text.length()))
        .value();
  }
  // Keys of token p: (p % 5) / 5, of four elements: the logit is 4 (p % 5) / 5.
  static void write(cache::step_type& step) {
    std::vector<float> rows;
    for (const token& t : step.tokens())
      rows.insert(rows.end(), 4, static_cast<float>(t.pos % 5) / 5.0F);
    step.write({0, 0}, {rows.data(), step.tokens().size(), 4},
               {rows.data(), step.tokens().size(), 4});
  }
  template <class View>
  void attend(const View& view, position query) {
    std::array<float, 4> out{};
    headwise::attend(view, query, {ones.data(), 1, 4}, 1.0F, {out.data(), 1, 4}, {}, scratch);
  }

  cache manager{{1, 1, 1, 4}, {union_of(window(2), heavy_hitters(2))}, {}};
  cache::sequence_type text = manager.open();
  headwise::attend_scratch scratch{1, 4, 64};
  std::array<float, 4> ones{1, 1, 1, 1};
};

TEST_F(ranked_step, one_view_serves_all_queries_of_a_step) {
  auto step = opened(10);
  write(step);
  const auto view = step.head({0, 0});
  for (position query = 0; query < 10; ++query) {
    EXPECT_EQ(view.last_query(), query);
    EXPECT_TRUE(view.awaits_attention(query));
    attend(view, query);
  }
  EXPECT_EQ(view.last_query(), 9U);
  std::move(step).commit();
  // 8 and 9 are in the window; behind it 4 drew most, then 0, which the first query saw alone.
  EXPECT_EQ(engine<>::visible(text.head({0, 0}), 9), (positions{0, 4, 8, 9}));
}

TEST_F(ranked_step, queries_attend_in_order) {
  auto step = opened(3);
  write(step);
  const auto view = step.head({0, 0});
  EXPECT_DEATH(attend(view, 1), "before the attention of earlier queries was shown");
  attend(view, 0);
  const float weight = 1.0F;
  EXPECT_DEATH(view.observe(0, {&weight, 1, 1}), "observe is for the next query");
  attend(view, 1);
  EXPECT_DEATH(std::move(step).commit(), "whose attention a ranked head was not shown");
}

TEST_F(ranked_step, rows_are_written_before_their_attention_is_shown) {
  auto step = opened(1);
  const float weight = 1.0F;
  EXPECT_DEATH(step.head({0, 0}).observe(0, {&weight, 1, 1}), "before its rows are written");
}

TEST_F(ranked_step, weights_are_those_of_the_rows_that_are_seen) {
  auto step = opened(1);
  write(step);
  const float weight = 1.0F;
  EXPECT_DEATH(step.head({0, 0}).observe(0, {nullptr, 1, 0}), "one weight for each row");
  EXPECT_DEATH(step.head({0, 0}).observe(0, {&weight, 2, 1, 0}),
               "of the whole group, or their sum");
}

TEST_F(ranked_step, a_step_without_tokens_awaits_nothing) {
  auto first = opened(3);
  write(first);
  for (position query = 0; query < 3; ++query) attend(first.head({0, 0}), query);
  std::move(first).commit();
  auto step = opened(0);
  EXPECT_FALSE(step.head({0, 0}).awaits_attention(3));
  std::move(step).commit();
  EXPECT_EQ(text.length(), 3U);
}

TEST_F(ranked_step, truncation_is_to_a_length) {
  auto step = opened(5);
  write(step);
  for (position query = 0; query < 5; ++query) attend(step.head({0, 0}), query);
  std::move(step).commit();
  EXPECT_FALSE(text.try_truncate(6));
  EXPECT_TRUE(text.try_truncate(5));
  EXPECT_FALSE(text.try_truncate(2));  // the horizon is 0
  EXPECT_EQ(text.length(), 5U);
  EXPECT_TRUE(text.try_truncate(0));
  EXPECT_EQ(text.length(), 0U);
}

}  // namespace
}  // namespace headwise_tests
