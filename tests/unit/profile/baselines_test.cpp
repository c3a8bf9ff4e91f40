// SPDX-License-Identifier: Apache-2.0
//
// Expected rows at other lengths, and the plans that no profile made.

#include "headwise/profile/baselines.hpp"

#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/every_nth.hpp"
#include "support/recorded_maps.hpp"
#include "support/spec_rule.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

head_plan head_with(const policy_spec& policy, std::optional<double> forever_fraction = 0.0,
                    std::string name = "x") {
  head_plan plan;
  plan.name = std::move(name);
  plan.policy = policy;
  plan.forever_fraction = forever_fraction;
  return plan;
}

// Sinks in a row, then tokens without classes: what the last query of `length` sees.
double counted_rows(const policy_spec& policy, token_count sinks, token_count length) {
  double rows = 0.0;
  for (position pos = 0; pos < length; ++pos) {
    const token t{pos, 5, pos < sinks ? token_classes::sink : token_classes::none};
    rows += length - 1 - pos < lifetime_by_spec(policy, t) ? 1.0 : 0.0;
  }
  return rows;
}

TEST(expected_rows, are_exact_for_windows_sinks_and_global) {
  for (token_count sinks = 0; sinks < 6; ++sinks)
    for (token_count window = 1; window < 12; ++window) {
      const test_policy policies[] = {
          global{}, local_window(window), special_tokens(token_classes::sink),
          union_of(special_tokens(token_classes::sink), local_window(window)),
          union_of(special_tokens(token_classes::punctuation), local_window(window))};
      for (const test_policy& policy : policies)
        for (token_count length = 1; length < 30; ++length)
          ASSERT_EQ(expected_rows(head_with(make_spec(policy)), {sinks, {}}, length),
                    counted_rows(make_spec(policy), sinks, length))
              << make_spec(policy).kind << " sinks " << sinks << " window " << window << " length "
              << length;
    }
}

TEST(expected_rows, mix_what_stays_with_what_leaves) {
  const head_plan plan =
      head_with(make_spec(union_of(special_tokens(token_classes::sink | token_classes::punctuation),
                                   local_window(8))),
                0.25);
  // 4 sinks + a quarter of 96 + three quarters of a window of 8
  EXPECT_EQ(expected_rows(plan, {4, {}}, 100), 4.0 + 24.0 + 6.0);
  // while the window still holds all: all
  EXPECT_EQ(expected_rows(plan, {4, {}}, 12), 12.0);
  EXPECT_EQ(expected_rows(plan, {4, {}}, 3), 3.0);
  EXPECT_EQ(expected_rows(plan, {4, {}}, 0), 0.0);
}

// Nobody measured how many tokens a class has: no number is made up.
TEST(expected_rows, need_a_share_where_some_tokens_stay_and_others_leave) {
  const policy_spec mixed = make_spec(
      union_of(special_tokens(token_classes::sink | token_classes::special), local_window(8)));
  blueprint plan = uniform_blueprint({1, 2, 1, 8}, mixed, {}, {4, {}});
  EXPECT_EQ(plan.heads.front().forever_fraction, std::nullopt);
  try {
    (void)expected_rows(plan, 100);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), error_code::missing);
    EXPECT_NE(e.place().find("forever_fraction"), std::string::npos);
  }
  EXPECT_THROW((void)mean_expected_rows(plan, 100), error);
  EXPECT_THROW((void)window_for_rows(plan, 100), error);
  plan.heads.front().forever_fraction = 0.0;  // a text of which one knows that none is special
  EXPECT_EQ(expected_rows(plan, 100), 12.0);
  // Where all stay, or all leave, there is nothing to know.
  EXPECT_EQ(expected_rows(head_with(make_spec(global{}), std::nullopt), {4, {}}, 100), 100.0);
  EXPECT_EQ(expected_rows(head_with(make_spec(local_window(8)), std::nullopt), {4, {}}, 100), 8.0);
}

TEST(expected_rows, have_no_mean_over_a_length_that_no_sequence_has) {
  const blueprint plan = uniform_blueprint({1, 1, 1, 8}, make_spec(local_window(4)));
  EXPECT_THROW((void)mean_expected_rows(plan, forever), error);
}

TEST(expected_rows, count_the_heavy_hitters_behind_the_window) {
  const special_tokens sinks(token_classes::sink);
  const head_plan plan =
      head_with(make_spec(union_of(sinks, local_window(8), heavy_hitters(0.1, 20))));
  EXPECT_EQ(expected_rows(plan, {4, {}}, 300), 4.0 + 8.0 + 20.0);
  EXPECT_EQ(expected_rows(plan, {4, {}}, 100), 4.0 + 8.0 + 10.0);
  EXPECT_EQ(expected_rows(plan, {4, {}}, 13), 13.0);  // a pool of two, and one past the window
  EXPECT_EQ(expected_rows(plan, {4, {}}, 10), 10.0);
  // What is past the window may stay for good, and then it is in no pool.
  const head_plan some =
      head_with(make_spec(union_of(sinks, local_window(8), heavy_hitters(90))), 0.25);
  EXPECT_EQ(expected_rows(some, {4, {}}, 200), 4.0 + 49.0 + 6.0 + 90.0);
  EXPECT_EQ(expected_rows(some, {4, {}}, 100), 100.0);
  // A sequence of 100 tokens is opened for 100: its pool has 10 rows from the start.
  blueprint all = uniform_blueprint({1, 1, 1, 8}, plan.policy, plan.name, {4, {}});
  all.heads.front().forever_fraction = 0.0;
  double sum = 0.0;
  for (token_count now = 1; now <= 100; ++now) sum += std::min(now, 22U);
  EXPECT_NEAR(mean_expected_rows(all, 100), sum / 100, 1e-9);
}

TEST(expected_rows, take_a_strangers_policy) {
  const head_plan plan = head_with(make_spec(test_policy(stranger::every_nth(4, 1, 1))), 0.25);
  EXPECT_EQ(expected_rows<test_policies>(plan, {}, 100), 25.75);
  EXPECT_THROW((void)expected_rows(plan, {}, 100), error);
}

// At the stated length they are close to what the profile counted: f is a share, not a place.
TEST(expected_rows, agree_with_the_profile_that_they_come_from) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    random_source random(seed);
    const model_shape shape{1, 2, 1, 8};
    const token_rules rules{2, {}};
    const std::vector<recorded_map> maps = random_maps(random, shape, 3, 2);
    profile_options options;
    options.measure.length = 200;
    recorded_source source{shape, &maps};
    const head_plan plan = profile(source, rules, {}, options).heads.front();
    // Of the last w tokens, (1 - f) w would leave on average and are held as yet; in these prompts
    // they may be from 0 to w, and where all leave they are w.
    ASSERT_TRUE(plan.forever_fraction);
    const double f = *plan.forever_fraction;
    const token_count window = *lifetimes_of(make_policy<>(plan.policy)).begin();
    const double bound =
        f == 0.0 || window == forever ? 1e-9 : std::max(f, 1.0 - f) * window + 1e-9;
    ASSERT_NEAR(expected_rows(plan, rules, 200), 200 * plan.resident_fraction, bound) << plan.name;
  }
}

blueprint some_plan() {
  blueprint plan = uniform_blueprint({6, 4, 2, 8}, make_spec(global{}), {}, {4, {}});
  for (std::size_t i = 0; i < plan.heads.size(); ++i)
    if (i % 3 != 0)
      plan.heads[i] = head_with(make_spec(local_window(static_cast<token_count>(10 + i))), 0.0,
                                "local(" + std::to_string(10 + i) + ")");
  return plan;
}

TEST(mean_expected_rows, are_the_mean_over_lengths) {
  const blueprint plan = some_plan();
  double sum = 0.0;
  for (token_count length = 1; length <= 64; ++length) sum += expected_rows(plan, length);
  EXPECT_NEAR(mean_expected_rows(plan, 64), sum / 64, 1e-9);
}

TEST(window_for_rows, is_the_smallest_that_holds_as_much) {
  const auto mean = [](token_count window, token_count length) {
    double rows = 0.0;
    for (token_count now = 1; now <= length; ++now) rows += std::min(window, now);
    return rows / length;
  };
  for (token_count length = 1; length < 40; ++length)
    for (double rows = 0.0; rows <= (length + 1) / 2.0; rows += 0.25) {
      const token_count window = window_for_rows(rows, length);
      ASSERT_GE(mean(window, length), rows - 1e-9);
      if (window > 1) {
        ASSERT_LT(mean(window - 1, length), rows);
      }
    }
  EXPECT_EQ(window_for_rows(1e9, 40), 40U);
  EXPECT_THROW((void)window_for_rows(-1.0, 40), error);
  EXPECT_THROW((void)window_for_rows(1.0, 0), error);
}

TEST(window_plan, needs_a_length) {
  EXPECT_THROW((void)window_plan(some_plan(), 4, 0), error);
  EXPECT_EQ(window_plan(some_plan(), 4, 1).heads.front().resident_fraction, 1.0);
}

TEST(window_plan, holds_what_the_blueprint_holds) {
  const blueprint plan = some_plan();
  const token_count window = window_for_rows(plan, 64);
  const blueprint plain = window_plan(plan, window, 64);
  EXPECT_GE(mean_expected_rows(plain, 64), mean_expected_rows(plan, 64));
  EXPECT_LT(mean_expected_rows(plain, 64), mean_expected_rows(plan, 64) + 1.0);
  for (const head_plan& head : plain.heads) {
    EXPECT_EQ(head.policy, make_spec(local_window(window)));
    EXPECT_EQ(head.resident_fraction, window / 64.0);
  }
  EXPECT_EQ(plain.shape, plan.shape);
  EXPECT_EQ(plain.origin.length, 64U);
}

std::map<std::string, int> histogram(const blueprint& plan) {
  std::map<std::string, int> counts;
  for (const head_plan& head : plan.heads) ++counts[head.name];
  return counts;
}

TEST(shuffled_plan, moves_the_policies_and_keeps_their_number) {
  const blueprint plan = some_plan();
  const blueprint once = shuffled_plan(plan, 1);
  EXPECT_EQ(histogram(once), histogram(plan));
  EXPECT_EQ(once, shuffled_plan(plan, 1));
  EXPECT_NE(once, shuffled_plan(plan, 2));
  EXPECT_EQ(once.heads.front().recovery, 0.0);  // not measured
  EXPECT_TRUE(once.heads.front().candidates.empty());
}

TEST(random_plan, draws_every_class) {
  blueprint plan = uniform_blueprint({30, 4, 4, 8}, make_spec(global{}));
  const std::vector<head_plan> classes{head_with(make_spec(global{}), 1.0, "global"),
                                       head_with(make_spec(local_window(4)), 0.0, "local(4)"),
                                       head_with(make_spec(local_window(9)), 0.0, "local(9)")};
  const blueprint drawn = random_plan(plan, classes, 7);
  EXPECT_EQ(drawn, random_plan(plan, classes, 7));
  // 120 draws: 40 of each within five standard deviations (5.2 each).
  for (const auto& [name, count] : histogram(drawn)) EXPECT_NEAR(count, 40, 26) << name;
  EXPECT_EQ(histogram(drawn).size(), 3U);
  EXPECT_THROW((void)random_plan(plan, {}, 7), error);
}

TEST(rule_of_thumb_plan, puts_the_middle_in_the_middle) {
  const head_plan local = head_with(make_spec(local_window(4)), 0.0, "l");
  const head_plan middle = head_with(make_spec(global{}), 1.0, "g");
  const auto layers = [&](std::uint32_t count) {
    std::string text;
    const blueprint plan =
        rule_of_thumb_plan(uniform_blueprint({count, 2, 1, 8}, make_spec(global{})), local, middle);
    for (const head_plan& head : plan.heads) text += head.name;
    return text;
  };
  EXPECT_EQ(layers(1), "l");
  EXPECT_EQ(layers(2), "ll");
  EXPECT_EQ(layers(3), "lgl");
  EXPECT_EQ(layers(4), "lggl");
  EXPECT_EQ(layers(5), "lgggl");
  EXPECT_EQ(layers(6), "llggll");
  EXPECT_EQ(layers(7), "llgggll");
  EXPECT_EQ(layers(8), "llggggll");
  EXPECT_EQ(layers(9), "lllggglll");
}

TEST(window_head, keeps_what_its_name_says) {
  const token_rules rules{4, {}};
  const head_plan plain = window_head(10, false, rules, 100);
  const head_plan streaming = window_head(10, true, rules, 100);
  EXPECT_EQ(plain.policy, make_spec(local_window(10)));
  EXPECT_EQ(plain.resident_fraction, 0.1);
  EXPECT_EQ(streaming.policy,
            make_spec(union_of(special_tokens(token_classes::sink), local_window(10))));
  EXPECT_EQ(streaming.resident_fraction, 0.14);
  EXPECT_NE(plain.name, streaming.name);
}

TEST(heavy_hitter_head, halves_its_rows) {
  for (const token_count rows : {1U, 2U, 7U, 40U}) {
    const head_plan head = heavy_hitter_head(rows, {}, 100);
    EXPECT_EQ(head.resident_fraction, rows / 100.0) << rows;
    EXPECT_EQ(head.policy,
              make_spec(union_of(local_window(rows - rows / 2), heavy_hitters(rows / 2))));
  }
}

TEST(two_class_plan, makes_the_first_of_an_order_global) {
  const blueprint like = uniform_blueprint({2, 4, 2, 8}, make_spec(global{}), {}, {4, {}});
  const head_plan local = window_head(8, true, like.tokens, 100);
  const std::vector<std::size_t> order{2, 0, 3, 1};
  for (std::size_t globals = 0; globals <= 4; ++globals) {
    const blueprint plan = two_class_plan(like, order, globals, local);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(plan.heads[order[i]].policy, i < globals ? make_spec(global{}) : local.policy);
    const auto kept = static_cast<double>(globals);
    EXPECT_EQ(expected_rows(plan, 100), (kept * 100.0 + (4.0 - kept) * 12.0) / 4.0);
  }
}

TEST(random_order, has_every_head_once) {
  const std::vector<std::size_t> once = random_order(50, 1);
  EXPECT_EQ(once, random_order(50, 1));
  EXPECT_NE(once, random_order(50, 2));
  std::vector<std::size_t> sorted = once;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_NE(once, sorted);
}

TEST(random_order, puts_every_head_everywhere) {
  std::vector<std::vector<int>> seen(5, std::vector<int>(5, 0));  // [places][heads]
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::vector<std::size_t> order = random_order(5, seed);
    for (std::size_t place = 0; place < 5; ++place) ++seen[place][order[place]];
  }
  // 400 of each within five standard deviations (17.9 each).
  for (const std::vector<int>& place : seen)
    for (const int count : place) EXPECT_NEAR(count, 400, 90);
}

TEST(order_by_need, puts_first_what_loses_most) {
  blueprint plan = uniform_blueprint({2, 2, 2, 8}, make_spec(global{}));
  for (const auto& [head, recovery] : {std::pair(0U, 0.9), {1U, 0.5}, {2U, 0.9}, {3U, 0.7}})
    plan.heads[head].candidates = {{"a", 0.0, 0.0}, {"b", recovery, 0.1}};
  EXPECT_EQ(order_by_need(plan, "b"), (std::vector<std::size_t>{1, 3, 0, 2}));
  try {
    (void)order_by_need(plan, "c");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), error_code::missing);
    EXPECT_NE(std::string(e.what()).find("'c'"), std::string::npos);
  }
}

TEST(largest_within, fills_a_budget_and_no_more) {
  const blueprint like = uniform_blueprint({2, 4, 2, 8}, make_spec(global{}), {}, {4, {}});
  const auto plan_of = [&](std::size_t window) {
    return uniform_plan(like, window_head(static_cast<token_count>(window), true, like.tokens, 100),
                        100);
  };
  for (double rows = 0.0; rows < 120.0; rows += 2.5) {
    const auto window = largest_within(rows, 100, 100, plan_of);
    if (rows < 5.0) {
      EXPECT_EQ(window, std::nullopt) << rows;
      continue;
    }
    ASSERT_TRUE(window) << rows;
    EXPECT_LE(expected_rows(plan_of(*window), 100), rows);
    if (*window < 100) {
      EXPECT_GT(expected_rows(plan_of(*window + 1), 100), rows);
    }
  }
}

}  // namespace
}  // namespace headwise_tests
