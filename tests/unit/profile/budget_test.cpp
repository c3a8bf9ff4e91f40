// SPDX-License-Identifier: Apache-2.0
//
// A plan within a budget, held against every choice that there is, and against the plans that a
// target makes.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

using offered = std::vector<std::vector<offer>>;  // [scopes][offers]

struct spent {
  double rows = 0.0, harm = 0.0;
};
spent total(const offered& scopes, const std::vector<std::size_t>& chosen) {
  spent sum;
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    sum.rows += scopes[s].at(chosen.at(s)).rows;
    sum.harm += scopes[s][chosen[s]].harm;
  }
  return sum;
}

// Offers in no order, some that others beat, and one that recovers everything.
offered random_offers(random_source& random, std::size_t scopes, std::uint32_t most) {
  offered all(scopes);
  for (std::vector<offer>& offers : all) {
    for (std::uint32_t n = random.below(most); n > 0; --n) {
      const double lost = random.between(1, 1000) / 1000.0;
      offers.push_back({1.0 - lost, 1.0 + random.below(4000) / 4.0, lost});
    }
    offers.insert(offers.begin() + random.below(static_cast<std::uint32_t>(offers.size()) + 1),
                  {1.0, 1001.0, 0.0});
  }
  return all;
}

// The least that any choice loses within so many rows, by trying all of them.
double least_possible(const offered& scopes, double required, double rows) {
  double least = std::numeric_limits<double>::infinity();
  const std::function<void(std::size_t, spent)> visit = [&](std::size_t s, spent sum) {
    if (sum.rows > rows) return;
    if (s == scopes.size()) {
      least = std::min(least, sum.harm);
      return;
    }
    for (const offer& o : scopes[s])
      if (o.recovery >= required) visit(s + 1, {sum.rows + o.rows, sum.harm + o.harm});
  };
  visit(0, {});
  return least;
}

// Of each scope what has the fewest rows and recovers as much as `level`, the first of equals.
spent total_of_threshold(const offered& scopes, double level) {
  spent sum;
  for (const std::vector<offer>& offers : scopes) {
    const offer* least = nullptr;
    for (const offer& o : offers)
      if (o.recovery >= level && (least == nullptr || o.rows < least->rows)) least = &o;
    sum.rows += least->rows;
    sum.harm += least->harm;
  }
  return sum;
}
double harm_of_best_threshold(const offered& scopes, double required, double rows) {
  double least = std::numeric_limits<double>::infinity();
  for (int level = 0; level <= 1000; ++level) {
    const spent sum = total_of_threshold(scopes, std::max(required, level / 1000.0));
    if (sum.rows <= rows) least = std::min(least, sum.harm);
  }
  return least;
}

// Below what any choice within the rows loses (weak duality): of prices of a row, the one that says
// most.
double bound_of_harm(const offered& scopes, double rows) {
  double bound = 0.0, cheap = 0.0, dear = 10.0;
  for (int i = 0; i < 100; ++i) {
    const double price = (cheap + dear) / 2.0;
    spent sum;
    for (const std::vector<offer>& offers : scopes) {
      const auto cost = [&](const offer& o) { return o.harm + price * o.rows; };
      const offer& best =
          *std::min_element(offers.begin(), offers.end(),
                            [&](const offer& a, const offer& b) { return cost(a) < cost(b); });
      sum.rows += best.rows;
      sum.harm += best.harm;
    }
    bound = std::max(bound, sum.harm + price * (sum.rows - rows));
    (sum.rows > rows ? cheap : dear) = price;
  }
  return bound;
}

TEST(least_harm, does_no_more_harm_than_any_choice_within_the_budget) {
  std::size_t tight = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    random_source random(seed);
    const offered scopes = random_offers(random, random.between(1, 5), 7);
    const double required = random.one_in(2) ? 0.0 : random.below(1000) / 1000.0;
    const double full = 1001.0 * static_cast<double>(scopes.size());
    const double rows = full * random.between(1, 100) / 100.0;
    if (std::isinf(least_possible(scopes, required, rows))) {
      EXPECT_THROW((void)least_harm(scopes, required, rows), error) << seed;
      ++tight;
      continue;
    }
    const std::vector<std::size_t> chosen = least_harm(scopes, required, rows);
    for (std::size_t s = 0; s < scopes.size(); ++s)
      ASSERT_GE(scopes[s].at(chosen.at(s)).recovery, required) << seed;
    const spent sum = total(scopes, chosen);
    ASSERT_LE(sum.rows, rows) << seed;
    // What is stated of the rounding: a 16,384th of the budget for each scope.
    const double counted = rows * (1.0 - static_cast<double>(scopes.size()) / 16384.0);
    ASSERT_LE(sum.harm, least_possible(scopes, required, counted) + 1e-12) << seed;
    ASSERT_LE(sum.harm, harm_of_best_threshold(scopes, required, rows)) << seed;
  }
  EXPECT_GT(tight, 20U);
}

TEST(least_harm, spends_the_whole_budget_on_many_heads) {
  random_source random(7);
  const offered scopes = random_offers(random, 96, 40);
  const double full = 1001.0 * 96;
  double before = 96.0;
  for (const double share : {0.1, 0.2, 0.4, 0.6, 0.8}) {
    const spent sum = total(scopes, least_harm(scopes, 0.0, share * full));
    if (sum.harm > 0.0) {
      EXPECT_GT(sum.rows, 0.98 * share * full);
    }
    EXPECT_LE(sum.rows, share * full);
    EXPECT_LE(sum.harm, before);
    before = sum.harm;
  }
  // All that there is suffices for everything, and the refusal names both numbers.
  EXPECT_EQ(total(scopes, least_harm(scopes, 1.0, full)).harm, 0.0);
  try {
    (void)least_harm(scopes, 1.0, full - 1.0);
    FAIL() << "every head was owed everything";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), error_code::out_of_range);
    EXPECT_NE(std::string(e.what()).find("96096"), std::string::npos) << e.what();
  }
}

TEST(least_harm, comes_within_a_step_of_what_is_possible_on_a_thousand_heads) {
  for (const std::size_t heads : {1024U, 5120U}) {
    random_source random(static_cast<std::uint32_t>(heads));
    const offered scopes = random_offers(random, heads, 20);
    const double full = 1001.0 * static_cast<double>(heads);
    for (const double share : {0.3, 0.5}) {
      const spent sum = total(scopes, least_harm(scopes, 0.0, share * full));
      const double bound = bound_of_harm(scopes, share * full);
      EXPECT_GT(bound, 1.0);
      EXPECT_LE(sum.rows, share * full);
      EXPECT_GT(sum.rows, share * full - 25.0);
      EXPECT_LE(sum.harm, bound + 1.0) << heads << " heads, " << share;  // no step undoes more
    }
  }
}

TEST(least_harm, is_no_worse_than_one_threshold_for_a_thousand_heads) {
  random_source random(11);
  const offered scopes = random_offers(random, 1024, 20);
  for (const double level : {0.5, 0.95}) {
    const spent ladder = total_of_threshold(scopes, level);
    const spent sum = total(scopes, least_harm(scopes, level, ladder.rows));
    EXPECT_LE(sum.rows, ladder.rows);
    EXPECT_LE(sum.harm, ladder.harm) << level;
  }
}

// A 16,384th of this budget is a row, so the steps of both kinds of heads would round to one.
TEST(least_harm, counts_rows_as_they_are) {
  offered scopes;
  for (int i = 0; i < 512; ++i) {
    scopes.push_back({{0.1, 15.2, 1.0}, {1.0, 15.8, 0.0}});
    scopes.push_back({{0.1, 15.2, 1.1}, {1.0, 16.4, 0.0}});
  }
  // All steps of the first kind, and as many of the second as fit behind them.
  const double left = 16384.0 - 512 * (15.8 + 15.2);
  const spent sum = total(scopes, least_harm(scopes, 0.0, 16384.0));
  EXPECT_LE(sum.rows, 16384.0);
  EXPECT_NEAR(sum.harm, 1.1 * (512.0 - std::floor(left / 1.2)), 1e-9);
}

// What just fits is in sixteen-thousandths no other than what just does not.
TEST(least_harm, takes_what_just_fits) {
  const offered scopes{{{0.1, 1.0, 0.9}, {0.2, 16384.0, 0.8}, {1.0, 16384.3, 0.0}}};
  EXPECT_EQ(least_harm(scopes, 0.0, 16384.0), std::vector<std::size_t>{1});
  EXPECT_EQ(least_harm(scopes, 0.0, 16383.9), std::vector<std::size_t>{0});
  EXPECT_EQ(least_harm(scopes, 0.0, 16384.3), std::vector<std::size_t>{2});
}

// Less would be lost if the first lost more than it is allowed to.
TEST(least_harm, takes_nothing_below_what_is_required) {
  const offered scopes{{{0.5, 10.0, 0.5}, {0.55, 910.0, 0.45}, {1.0, 1001.0, 0.0}},
                       {{0.6, 10.0, 0.9}, {0.9, 510.0, 0.1}, {1.0, 1001.0, 0.0}}};
  EXPECT_EQ(least_harm(scopes, 0.52, 930.0), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(least_harm(scopes, 0.0, 930.0), (std::vector<std::size_t>{0, 1}));
}

// Thirds of rows, summed in whatever order, and budgets that are a rounding below a choice's rows.
TEST(least_harm, holds_no_rounding_more_than_the_budget) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    random_source random(seed);
    offered scopes = random_offers(random, 12, 6);
    for (std::vector<offer>& offers : scopes)
      for (offer& o : offers) o.rows /= 30.0;
    const double rows = total(scopes, least_harm(scopes, 0.0, 12 * 25.0)).rows;
    const double less = std::nextafter(rows, 0.0);
    ASSERT_LE(total(scopes, least_harm(scopes, 0.0, less)).rows, less) << seed;
  }
}

TEST(least_harm, takes_the_first_of_equals) {
  const offered scopes{{{0.5, 4.0, 0.5}, {0.5, 4.0, 0.5}, {0.4, 4.0, 0.6}, {1.0, 8.0, 0.0}}};
  EXPECT_EQ(least_harm(scopes, 0.0, 7.0), std::vector<std::size_t>{0});
  EXPECT_EQ(least_harm(scopes, 0.0, 8.0), std::vector<std::size_t>{3});
}

struct measured_prompts {
  model_shape shape;
  profile_options options;
  std::vector<recorded_map> maps;

  explicit measured_prompts(std::uint32_t seed, std::uint32_t most_prompts = 3) {
    random_source random(seed);
    const std::uint32_t kv_heads = random.between(1, 3);
    shape = {random.between(1, 3), kv_heads * random.between(1, 2), kv_heads, 8};
    maps = random_maps(random, shape, random.between(1, most_prompts), 2);
    options.measure.length = random.between(20, 60);
    options.measure.ladder.windows = {2, 3, 5, 9, 15, 30};
    options.classify.max_learned_ids = random.below(5);
    options.classify.granularity = static_cast<plan_granularity>(random.below(2));
    options.classify.recovery_target = 0.0;
  }
  [[nodiscard]] blueprint plan(double target, std::optional<double> budget = std::nullopt) {
    options.classify.recovery_target = target;
    options.classify.budget = budget;
    recorded_source source{shape, &maps};
    return profile(source, {2, {}}, {}, options);
  }
};

double mean_rows(const blueprint& plan) {
  double sum = 0.0;
  for (const head_plan& head : plan.heads) sum += head.resident_fraction;
  return sum / static_cast<double>(plan.heads.size());
}
// Of one prompt.
double harm_in(const blueprint& plan) {
  double sum = 0.0;
  for (const head_plan& head : plan.heads) sum += std::pow(1.0 - head.recovery, 4.0);
  return sum;
}

TEST(budget, does_no_more_harm_than_a_target_with_its_rows) {
  std::size_t better = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    measured_prompts prompts(seed, 1);
    for (const double target : {0.5, 0.8, 0.95}) {
      const blueprint by_target = prompts.plan(target);
      EXPECT_EQ(by_target.origin.budget, std::nullopt);
      const double share = mean_rows(by_target);
      const double budget = std::min(1.0, share * (1.0 + 1e-12));  // summed in another order
      const blueprint within = prompts.plan(0.0, budget);
      EXPECT_EQ(within.origin.budget, budget);
      ASSERT_LE(mean_rows(within), budget * (1.0 + 1e-12)) << seed;
      const double gain = harm_in(by_target) - harm_in(within);
      ASSERT_GE(gain, -1e-12) << seed << " target " << target;
      better += gain > 1e-6;
      const bool by_layer = prompts.options.classify.granularity == plan_granularity::layer;
      const std::size_t sharing = by_layer ? prompts.shape.kv_heads : 1;
      for (std::size_t h = 0; h < within.heads.size(); ++h)
        ASSERT_EQ(within.heads[h].policy, within.heads[h - h % sharing].policy);
    }
  }
  EXPECT_GT(better, 30U);
}

// With one window for each head's rows: the first loses a fifth in both prompts, the second nothing
// in one and a third, which is less in all, in the other.
TEST(budget, serves_the_head_that_loses_most_in_one_prompt) {
  std::vector<recorded_map> maps;
  for (std::uint64_t prompt = 0; prompt < 2; ++prompt)
    for (std::uint32_t head = 0; head < 2; ++head) {
      const float far = head == 0 ? 0.2F : prompt == 0 ? 0.0F : 0.35F;
      std::vector<float> weights;
      for (std::size_t query = 0; query < 8; ++query)
        for (std::size_t key = 0; key < 8; ++key)
          weights.push_back(query == 0 && key == 0 ? 1.0F
                            : key == 0             ? far
                            : key == query         ? 1.0F - far
                                                   : 0.0F);
      std::vector<token> keys(8);
      for (position pos = 0; pos < 8; ++pos) keys[pos] = {pos, 1, token_classes::none};
      maps.push_back(make_map(keys, weights, 0, head));
      maps.back().prompt = prompt;
    }
  recorded_source source{{1, 2, 2, 8}, &maps};
  profile_options options;
  options.measure.use_ladder = false;
  options.measure.candidates = {{"near", make_spec(local_window(1))}};
  options.classify.recovery_target = 0.0;
  options.classify.budget = 9.0 / 16;  // one row, and eight
  const blueprint plan = profile(source, {0, {}}, {}, options);
  EXPECT_LT(plan.heads[0].candidates[0].recovery, plan.heads[1].candidates[0].recovery);
  EXPECT_EQ(plan.heads[0].name, "near");
  EXPECT_EQ(plan.heads[1].name, "global");
}

TEST(budget, owes_each_head_its_target_first) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    measured_prompts prompts(seed);
    const double share = mean_rows(prompts.plan(0.8));
    const blueprint within = prompts.plan(0.8, std::min(1.0, share * 1.1));
    for (const head_plan& head : within.heads) ASSERT_GE(head.recovery, 0.8) << seed;
    if (share > 0.1) {
      EXPECT_THROW((void)prompts.plan(0.8, share * 0.9), error) << seed;
    }
  }
}

// What the windows of a blueprint's candidates with punctuation are, one candidate each.
std::vector<token_count> windows_tried(const blueprint& plan) {
  const std::string before = "special+punctuation+local(";
  std::vector<token_count> windows;
  for (const candidate_recovery& c : plan.heads.front().candidates)
    if (c.name.rfind(before, 0) == 0)
      windows.push_back(static_cast<token_count>(std::stoul(c.name.substr(before.size()))));
  return windows;
}

TEST(budget_windows, are_four_to_each_doubling_and_below_the_length) {
  const std::vector<token_count> up_to_1024{8,   16,  24,  32,  40,  48,  56,  64,
                                            80,  96,  112, 128, 160, 192, 224, 256,
                                            320, 384, 448, 512, 640, 768, 896, 1024};
  for (token_count length = 0; length <= 1025; ++length) {
    std::vector<token_count> expected;
    for (const token_count window : up_to_1024)
      if (window < length) expected.push_back(window);
    ASSERT_EQ(budget_windows(length), expected) << length;
  }
  const std::vector<token_count> all = budget_windows(max_length);
  for (std::size_t i = 8; i < all.size(); ++i) {
    ASSERT_EQ(all[i] % 16, 0U);
    ASSERT_LE(4 * (all[i] - all[i - 1]), all[i - 1]);
    ASSERT_EQ(std::uint64_t{all[i]}, 2 * std::uint64_t{all[i - 4]});
  }
  EXPECT_EQ(all.back(), 3758096384U);  // 7/8 of 2^32
}

// They hold those of the ladder, so a plan that is free to take either can only win.
TEST(budget_windows, do_no_more_harm_than_those_of_the_ladder) {
  std::size_t better = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    measured_prompts prompts(seed, 1);
    prompts.options.measure.ladder.windows = ladder_options().windows;
    const double coarse = harm_in(prompts.plan(0.0, 0.5));
    prompts.options.measure.ladder.windows = budget_windows(max_length);
    const blueprint fine = prompts.plan(0.0, 0.5 + 9.0 / 16384.0);
    ASSERT_EQ(windows_tried(fine), budget_windows(prompts.options.measure.length)) << seed;
    ASSERT_LE(harm_in(fine), coarse + 1e-12) << seed;
    better += harm_in(fine) < 0.9 * coarse;
  }
  EXPECT_GT(better, 10U);
}

TEST(budget, is_a_share) {
  measured_prompts prompts(1);
  for (const double bad : {-0.1, 0.0, 1.5, std::nan("")})
    EXPECT_THROW((void)prompts.plan(0.0, bad), error) << bad;
}

}  // namespace
}  // namespace headwise_tests
