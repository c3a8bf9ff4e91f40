// SPDX-License-Identifier: Apache-2.0
//
// Recovery and resident rows are what the one predicate says, for any policy: post-conditions over
// random models, prompts, maps and policies, against loops over rules that are written out.

#include <cmath>

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/random_policy.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

struct recovery_trial {
  model_shape shape;
  token_count sinks, length;
  position skip = 0;
  std::vector<recorded_map> maps;
  std::vector<test_policy> candidates;
  std::vector<lifetime_rule> rules;  // [candidates]
  std::vector<token_count> pools;    // [candidates]

  explicit recovery_trial(std::uint32_t seed) {
    random_source random(seed);
    const std::uint32_t kv_heads = random.between(1, 3);
    shape = {random.between(1, 2), kv_heads * random.between(1, 3), kv_heads, 8};
    sinks = random.below(5);
    length = random.between(1, 60);
    const bool ranks = random.one_in(2);  // and then every query must have been recorded
    maps = random_maps(random, shape, random.between(1, 3), sinks,
                       ranks ? recorded_queries::all : recorded_queries::last);
    for (std::uint32_t c = random.between(1, 12); c-- > 0;) {
      ruled_policy chosen = random_policy(random);
      while (!ranks && chosen.pool > 0) chosen = random_policy(random);
      pools.push_back(chosen.pool);
      candidates.push_back(std::move(chosen.policy));
      rules.push_back(std::move(chosen.rule));
    }
    // The last query of the first prompt counts in any case.
    if (random.one_in(3)) skip = random.below(static_cast<std::uint32_t>(maps.front().keys.size()));
  }

  [[nodiscard]] profiler<test_policies> measured() const {
    measure_options options;
    options.length = length;
    options.skip_queries = skip;
    options.use_ladder = false;
    for (const test_policy& policy : candidates)
      options.candidates.push_back({std::to_string(options.candidates.size()), make_spec(policy)});
    profiler<test_policies> work(shape, token_rules{sinks, {}}, options);
    for (const recorded_map& map : maps) work.add(map.view());
    return work;
  }
};

// A row is scaled with an error below 2^-28 of its mass; sums of thousands of doubles add less.
constexpr double rounding_bound = 1.0 / (1 << 27);

TEST(recovery, is_the_mean_mass_that_queries_see) {
  std::size_t compared = 0, ranked = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const recovery_trial t(seed);
    const profiler<test_policies> work = t.measured();
    for (std::size_t c = 0; c < t.candidates.size(); ++c)
      for (std::uint32_t layer = 0; layer < t.shape.layers; ++layer)
        for (std::uint32_t head = 0; head < t.shape.query_heads; ++head, ++compared) {
          const double recovery = work.sums().table.recovery(layer, head, c);
          // 1. What the predicate says, or the pool. 2. Never above 1, never below 0.
          if (t.pools[c] > 0) {
            ASSERT_NEAR(
                recovery,
                naive_recovery(t.maps, t.shape, layer, head, t.rules[c], t.pools[c], t.skip), 1e-12)
                << "seed " << seed << " candidate " << c;
            ++ranked;
          } else {
            ASSERT_NEAR(recovery, naive_recovery(t.maps, layer, head, t.rules[c], t.skip),
                        rounding_bound)
                << "seed " << seed << " candidate " << c;
          }
          ASSERT_LE(recovery, 1.0);
          ASSERT_GE(recovery, 0.0);
        }
  }
  EXPECT_GT(compared, 5000U);
  EXPECT_GT(ranked, 1500U);
}

// The maps of one prompt, as if it were the only one; none where every query of it is skipped.
std::vector<recorded_map> of_prompt(const recovery_trial& t, std::uint64_t prompt) {
  std::vector<recorded_map> maps;
  for (const recorded_map& map : t.maps)
    if (map.prompt == prompt && map.first_query + map.queries > t.skip) {
      maps.push_back(map);
      maps.back().prompt = 0;
    }
  return maps;
}

TEST(harm, is_the_mean_over_prompts_of_the_fourth_power_of_what_each_loses) {
  std::size_t of_several = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const recovery_trial t(seed);
    const recovery_table table = t.measured().sums().table;
    for (std::size_t c = 0; c < t.candidates.size(); ++c) {
      double sum = 0.0;
      for (std::uint64_t prompt = 0; prompt < table.prompts(); ++prompt) {
        const std::vector<recorded_map> maps = of_prompt(t, prompt);
        if (maps.empty()) continue;
        sum += std::pow(1.0 - (t.pools[c] > 0 ? naive_recovery(maps, t.shape, 0, 0, t.rules[c],
                                                               t.pools[c], t.skip)
                                              : naive_recovery(maps, 0, 0, t.rules[c], t.skip)),
                        4.0);
      }
      ASSERT_NEAR(table.harm(0, 0, c), sum / static_cast<double>(table.prompts()), 1e-7)
          << "seed " << seed << " candidate " << c;
      of_several += table.prompts() > 1 && sum > 1e-3;
    }
  }
  EXPECT_GT(of_several, 100U);
}

TEST(recovery, is_exactly_one_where_nothing_is_lost) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    recovery_trial t(seed);
    t.candidates = {local_window(40), global{}, local_window(1000)};  // prompts have <= 40 tokens
    const profiler<test_policies> work = t.measured();
    for (std::size_t c = 0; c < t.candidates.size(); ++c)
      for (std::uint32_t layer = 0; layer < t.shape.layers; ++layer)
        for (std::uint32_t head = 0; head < t.shape.query_heads; ++head)
          ASSERT_EQ(work.sums().table.recovery(layer, head, c), 1.0);
  }
}

TEST(recovery, grows_with_the_window) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    recovery_trial t(seed);
    t.candidates.clear();
    for (token_count window = 1; window < 42; window += 4)
      t.candidates.emplace_back(local_window(window));
    const profiler<test_policies> work = t.measured();
    for (std::size_t c = 1; c < t.candidates.size(); ++c)
      ASSERT_GE(work.sums().table.recovery(0, 0, c), work.sums().table.recovery(0, 0, c - 1));
  }
}

TEST(resident_rows, are_those_that_the_last_query_sees) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const recovery_trial t(seed);
    const profiler<test_policies> work = t.measured();
    for (std::size_t c = 0; c < t.candidates.size(); ++c)
      // Whole numbers over a whole number: no rounding but one.
      ASSERT_DOUBLE_EQ(work.sums().table.resident_rows(c),
                       naive_rows(t.maps, t.rules[c], t.length, t.sinks, t.pools[c]))
          << "seed " << seed << " candidate " << c;
  }
}

TEST(forever_fraction, is_the_share_behind_the_sinks_that_never_leaves) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const recovery_trial t(seed);
    const profiler<test_policies> work = t.measured();
    for (std::size_t c = 0; c < t.candidates.size(); ++c) {
      double stays = 0.0, behind = 0.0;
      std::uint64_t last = ~std::uint64_t{0};
      for (const recorded_map& map : t.maps) {
        if (map.prompt == last) continue;
        last = map.prompt;
        for (const token& key : continued(map.keys, t.length, t.sinks)) {
          if (key.pos < t.sinks) continue;
          behind += 1.0;
          if (t.rules[c](key) == forever) stays += 1.0;
        }
      }
      ASSERT_DOUBLE_EQ(work.sums().table.forever_fraction(c), behind == 0.0 ? 1.0 : stays / behind);
    }
  }
}

TEST(recovery, counts_queries_from_the_first_that_is_not_skipped) {
  recovery_trial t(3);
  t.skip = 2;
  const profiler<test_policies> work = t.measured();
  std::uint64_t expected = 0;
  for (const recorded_map& map : t.maps)
    if (map.layer == 0 && map.query_head == 0)
      for (std::size_t row = 0; row < map.queries; ++row) expected += map.first_query + row >= 2;
  EXPECT_EQ(work.sums().table.queries(0, 0), expected);
}

// Rows of eighths: every sum is exact, so the two ways must agree to the last bit.
TEST(recovery, is_exact_by_hand) {
  std::vector<token> keys(4);
  for (position pos = 0; pos < 4; ++pos) keys[pos] = {pos, static_cast<std::int32_t>(pos), {}};
  const recorded_map map = make_map(keys, {1, 0, 0, 0,             //
                                           0.5F, 0.5F, 0, 0,       //
                                           0.25F, 0.25F, 0.5F, 0,  //
                                           0.125F, 0.5F, 0.125F, 0.25F});
  measure_options options;
  options.use_ladder = false;
  options.candidates = {{"w1", make_spec(local_window(1))},
                        {"w2", make_spec(local_window(2))},
                        {"w3", make_spec(local_window(3))},
                        {"id1", make_spec(special_tokens(token_classes::none, {1}))}};
  profiler<> work({1, 1, 1, 8}, {}, options);
  work.add(map.view());
  EXPECT_EQ(work.sums().table.recovery(0, 0, 0), (1.0 + 0.5 + 0.5 + 0.25) / 4);
  EXPECT_EQ(work.sums().table.recovery(0, 0, 1), (1.0 + 1.0 + 0.75 + 0.375) / 4);
  EXPECT_EQ(work.sums().table.recovery(0, 0, 2), (1.0 + 1.0 + 1.0 + 0.875) / 4);
  EXPECT_EQ(work.sums().table.recovery(0, 0, 3), (1.0 + 0.5 + 0.75 + 0.75) / 4);
  EXPECT_EQ(work.sums().table.resident_rows(0), 1.0);
  EXPECT_EQ(work.sums().table.resident_rows(2), 3.0);
  EXPECT_EQ(work.sums().table.resident_rows(3), 2.0);
  EXPECT_EQ(work.sums().table.recovery(0, 0, 4), 1.0);
  EXPECT_EQ(work.candidates()[4].name, "global");
}

}  // namespace
}  // namespace headwise_tests
