// SPDX-License-Identifier: Apache-2.0
//
// Fault cases D about heavy hitters. The cases let a query see the W tokens before it as well as
// itself and evict after it; here a window counts the query's own token. So a case's W is a window
// of W + 1, and what the case calls kept after a push is what the next query sees beside itself.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

using headwise::heavy_hitters;
using headwise::union_of;

[[nodiscard]] test_policy case_policy(token_count k, token_count w) {
  return union_of(window(w + 1), heavy_hitters(k));
}
// What the next query sees beside itself.
template <class Engine>
[[nodiscard]] positions kept_for_next(const Engine& text, headwise::head_id head = {0, 0}) {
  return Engine::visible(text.text().head(head), text.text().length());
}
// K[t] = e_t and q = scale * sum of e_t over the scored tokens: their logits are `scale`, others 0.
[[nodiscard]] fixture scoring_fixture(
    std::function<bool(std::uint32_t query_head, position)> scored, float scale) {
  return {[](headwise::head_id, position pos, std::span<float> row) {
            fill(row, 0.0F);
            row[pos] = 1.0F;
          },
          value_is_position(),
          [scored = std::move(scored), scale](std::uint32_t, std::uint32_t query_head, position,
                                              std::span<float> row) {
            for (position t = 0; t < row.size(); ++t) row[t] = scored(query_head, t) ? scale : 0.0F;
          }};
}

TEST(fault_cases, D01_the_newest_token_is_never_the_victim) {
  engine alone({1, 1, 1, 4}, {heavy_hitters(4)}, uniform_fixture());
  for (position t = 0; t < 44; ++t) {
    // Itself and at most the first four, which ties let stay.
    const float sum = t < 5 ? static_cast<float>(t * (t + 1)) / 2 : static_cast<float>(6 + t);
    EXPECT_FLOAT_EQ(alone.feed(1).last(), sum / static_cast<float>(std::min(t + 1, 5U)));
    EXPECT_EQ(alone.kept().back(), t);
  }
  engine both({1, 1, 1, 4}, {case_policy(2, 2)}, uniform_fixture());
  both.feed_singly(8);
  EXPECT_EQ(kept_for_next(both), (positions{0, 1, 6, 7}));
}

TEST(fault_cases, D02_scores_are_of_the_group_that_reads_the_head) {
  for (const float scale : {30.0F, 60.0F}) {
    // The scale of heads 2 and 3 is no business of KV head 0.
    fixture rows = scoring_fixture(
        [](std::uint32_t query_head, position t) { return t == (query_head < 2 ? 1U : 3U); }, 30);
    const auto plain = rows.query;
    rows.query = [plain, scale](std::uint32_t layer, std::uint32_t query_head, position pos,
                                std::span<float> row) {
      plain(layer, query_head, pos, row);
      if (query_head >= 2)
        for (float& x : row) x *= scale / 30.0F;
    };
    engine text({1, 4, 2, 8}, {case_policy(1, 1), case_policy(1, 1)}, rows);
    text.feed_singly(6);
    EXPECT_EQ(kept_for_next(text, {0, 0}), (positions{1, 5}));
    EXPECT_EQ(kept_for_next(text, {0, 1}), (positions{3, 5}));
  }
}

// One head, one row of numbers for each step: what the query gave to each row it sees, by position.
class shown_head {
 public:
  explicit shown_head(test_policy policy, std::uint32_t heads = 1)
      : cache_({1, heads, heads, 1}, std::vector<test_policy>(heads, std::move(policy)), {}),
        text_(cache_.open()) {}

  template <class Weight>
  void step(Weight&& weight) {
    const position pos = text_.length();
    auto step = text_.try_append(token{pos});
    ASSERT_TRUE(step.has_value());
    const float row = static_cast<float>(pos);
    for (std::uint32_t head = 0; head < cache_.shape().kv_heads; ++head) {
      step->write({0, head}, {&row, 1, 1}, {&row, 1, 1});
      const auto view = step->head({0, head});
      std::vector<float> weights;
      view.for_each_slab(pos, [&](const headwise::slab& s) {
        for (std::uint32_t r = 0; r < s.count; ++r) weights.push_back(weight(head, s.positions[r]));
      });
      view.observe(pos, {weights.data(), 1, weights.size()});
    }
    std::move(*step).commit();
  }
  [[nodiscard]] positions kept(std::uint32_t head = 0) const {
    return engine<>::visible(text_.head({0, head}), text_.length());
  }
  [[nodiscard]] double score(position pos) const {
    double result = std::numeric_limits<double>::quiet_NaN();
    text_.head({0, 0}).for_each_score([&](position at, float score) {
      if (at == pos) result = double{score};
    });
    return result;
  }

 private:
  headwise::cache_manager<test_policies, headwise::f32> cache_;
  headwise::cache_manager<test_policies, headwise::f32>::sequence_type text_;
};

TEST(fault_cases, D04_scores_do_not_tie_or_stop_growing) {
  shown_head close{test_policy(heavy_hitters(1))};
  close.step([](std::uint32_t, position) { return 1000.0F; });
  close.step([](std::uint32_t, position pos) { return pos == 1 ? 1001.5F : 0.0F; });
  EXPECT_EQ(close.kept(), (positions{1}));

  shown_head many{test_policy(heavy_hitters(1))};
  for (int i = 0; i < 5000; ++i)
    many.step([](std::uint32_t, position pos) { return pos == 0 ? 1.0F : 0.0F; });
  EXPECT_EQ(many.kept(), (positions{0}));
  EXPECT_NEAR(many.score(0), 5000.0, 0.01);
}

TEST(fault_cases, D06_a_fraction_never_empties_a_head) {
  for (token_count length = 1; length <= 3; ++length) {
    headwise::cache_manager<test_policies> cache({1, 1, 1, 4},
                                                 {test_policy(heavy_hitters(0.3, 100))}, {});
    auto text = cache.open(length);
    EXPECT_EQ(headwise::pool_rows_of(text.plan()[0], length), 1U);
  }
  EXPECT_EQ(heavy_hitters(0.3, 100).pool_rows(10), 3U);  // rounded up
  EXPECT_EQ(heavy_hitters(0.3, 100).pool_rows(11), 4U);
  EXPECT_EQ(heavy_hitters(0.3, 100).pool_rows(4'000'000'000U), 100U);
  EXPECT_EQ(heavy_hitters(1.0, 1000).pool_rows(7), 7U);
  EXPECT_EQ(heavy_hitters(1e-9, 1000).pool_rows(7), 1U);
  for (const double fraction : {0.0, -0.1, 1.0001, std::nan("")}) {
    try {
      static_cast<void>(heavy_hitters(fraction, 100));
      ADD_FAILURE() << fraction;
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::out_of_range);
      EXPECT_EQ(e.place(), "heavy_hitters.fraction");
    }
  }
  EXPECT_THROW(static_cast<void>(heavy_hitters(0.3, 0)), headwise::error);

  // Opened for 10 tokens at 0.3: three heavy hitters beside the query itself.
  headwise::cache_manager<test_policies, headwise::f32> cache(
      {1, 1, 1, 4}, {test_policy(heavy_hitters(0.3, 100))}, {});
  auto text = cache.open(10);
  headwise::attend_scratch scratch(1, 4, 16);
  for (position t = 0; t < 10; ++t) {
    auto step = text.try_append(token{t});
    const std::vector<float> row(4, static_cast<float>(t)), query(4, 0.0F);
    std::vector<float> out(4);
    step->write({0, 0}, {row.data(), 1, 4}, {row.data(), 1, 4});
    headwise::attend(step->head({0, 0}), t, {query.data(), 1, 4}, 1.0F, {out.data(), 1, 4}, {},
                     scratch);
    EXPECT_EQ(scratch.weights().width, std::min(t + 1, 4U));
    EXPECT_TRUE(std::isfinite(out[0]));
    std::move(*step).commit();
  }
}

TEST(fault_cases, D09_scores_stay_with_their_tokens) {
  engine text({1, 1, 1, 8}, {case_policy(2, 2)},
              scoring_fixture([](std::uint32_t, position t) { return t == 1 || t == 4; }, 3.0F));
  const std::vector<positions> expected{{0},          {0, 1},       {0, 1, 2},    {0, 1, 2, 3},
                                        {0, 1, 3, 4}, {0, 1, 4, 5}, {1, 4, 5, 6}, {1, 4, 6, 7}};
  for (const positions& kept : expected) {
    text.feed(1);
    EXPECT_EQ(kept_for_next(text), kept);
  }
}

TEST(fault_cases, D10_a_score_that_is_not_a_number_ranks_last) {
  for (std::uint32_t order = 0; order < 3; ++order) {
    // The heads see the same tokens, and the head of the NaN comes first, second or third.
    shown_head text(test_policy(heavy_hitters(3)), 3);
    for (int i = 0; i < 12; ++i)
      text.step([&](std::uint32_t head, position pos) {
        if (head == order && i == 5 && pos == 5) return std::numeric_limits<float>::quiet_NaN();
        return pos == 5 ? 9.0F : pos < 3 ? 1.0F : 0.0F;
      });
    for (std::uint32_t head = 0; head < 3; ++head)
      EXPECT_EQ(text.kept(head), head == order ? (positions{0, 1, 2}) : (positions{0, 1, 5}));
  }
  // A member whose score stops being a number leaves for the next that has one.
  shown_head member{test_policy(heavy_hitters(1))};
  member.step([](std::uint32_t, position) { return 1.0F; });
  member.step([](std::uint32_t, position pos) {
    return pos == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
  });
  EXPECT_EQ(member.kept(), (positions{1}));
}

TEST(fault_cases, D11_chunks_of_any_size_rank_the_same) {
  using chunks = std::vector<std::size_t>;
  const std::vector<test_policy> plan{case_policy(3, 2), test_policy(heavy_hitters(3)),
                                      union_of(special_ids({3}), window(2), heavy_hitters(2)),
                                      union_of(stranger::every_nth(4, 2, 6), heavy_hitters(5))};
  const headwise::model_shape shape{1, 8, 4, 8};
  const auto run = [&](const chunks& sizes) {
    engine<headwise::f16> text(shape, plan, random_fixture(11, 4.0F));
    std::vector<float> all;
    for (const std::size_t size : sizes) {
      const outputs out = text.feed(size);
      all.insert(all.end(), out.values.begin(), out.values.end());
    }
    std::vector<positions> kept;
    for (std::uint32_t head = 0; head < 4; ++head) kept.push_back(kept_for_next(text, {0, head}));
    return std::pair(all, kept);
  };
  const auto one_by_one = run(chunks(16, 1));
  for (const chunks& sizes : {chunks{16}, chunks{4, 4, 4, 4}, chunks{5, 11}, chunks{1, 15}}) {
    const auto chunked = run(sizes);
    EXPECT_EQ(chunked.first, one_by_one.first);  // bitwise
    EXPECT_EQ(chunked.second, one_by_one.second);
  }
}

// A plan does not change while a sequence lives; a full head gives one row for each that comes.
TEST(fault_cases, D14_one_row_leaves_for_one_that_comes) {
  engine text({1, 1, 1, 4}, {union_of(window(7), heavy_hitters(3))}, random_fixture(14));
  text.feed_singly(30);
  const std::size_t rows = text.text().stats().resident_rows;
  const positions before = text.kept();
  text.feed(1);
  EXPECT_EQ(text.text().stats().resident_rows, rows);
  EXPECT_EQ(text.kept().size(), before.size());
  EXPECT_EQ(text.text().length(), 31U);
}

}  // namespace
}  // namespace headwise_tests
