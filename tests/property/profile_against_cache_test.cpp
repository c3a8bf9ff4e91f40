// SPDX-License-Identifier: Apache-2.0
//
// The promise that offline and online cannot drift apart: the recovery that the profiler states is
// the attention mass on the rows that a real cache hands to a kernel, and the resident rows that it
// states are those that the cache holds. Both are what the policy's rule says, written out; on a
// head that ranks, that of the heavy hitters (naive_hitters.hpp).

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "headwise/codec/f32.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/every_nth.hpp"
#include "support/random_policy.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;
using cache = cache_manager<test_policies, f32>;

// The maps of one group: of all query heads, of one prompt, on one KV head.
using group_maps = std::vector<const recorded_map*>;

struct decoded {
  std::vector<double> mass;                 // [group], summed over queries
  std::vector<std::set<position>> visible;  // [queries], the query's own token among them
  std::size_t resident_rows = 0;
};

// What each query head gave to the rows that the head shows the query: [group, rows] in the order
// of slabs. Adds the positions of the rows to `visible`.
template <class View>
[[nodiscard]] std::vector<std::vector<double>> shown(const group_maps& group, const View& view,
                                                     position query, std::set<position>& visible) {
  std::vector<std::vector<double>> weights(group.size());
  view.for_each_slab(query, [&](const slab& s) {
    for (std::uint32_t i = 0; i < s.count; ++i) {
      visible.insert(s.positions[i]);
      for (std::size_t h = 0; h < group.size(); ++h)
        weights[h].push_back(double{group[h]->at(query - group[h]->first_query, s.positions[i])});
    }
  });
  return weights;
}

// As in a decode with this very policy: probabilities over the rows that are there.
template <class View>
void observe(const View& view, position query, const std::vector<std::vector<double>>& weights) {
  std::vector<float> probabilities;
  for (const std::vector<double>& of_head : weights) {
    const double sum = std::accumulate(of_head.begin(), of_head.end(), 0.0);
    for (const double weight : of_head)
      probabilities.push_back(static_cast<float>(sum > 0.0 ? weight / sum : 0.0));
  }
  view.observe(query, {probabilities.data(), weights.size(), weights.front().size()});
}

// Decodes the prompt token by token on one head.
[[nodiscard]] decoded decode(const group_maps& group, const test_policy& policy) {
  cache manager({1, static_cast<std::uint32_t>(group.size()), 1, 1}, {policy}, {});
  auto text = manager.open();
  const float zero = 0.0F;
  decoded result;
  result.mass.assign(group.size(), 0.0);
  for (const token& t : group.front()->keys) {
    auto step = text.try_append({&t, 1});
    if (!step) throw std::runtime_error("no pages");
    step->write({0, 0}, {&zero, 1, 1}, {&zero, 1, 1});
    if (t.pos >= group.front()->first_query) {
      const auto view = step->head({0, 0});
      const auto weights = shown(group, view, t.pos, result.visible.emplace_back());
      for (std::size_t h = 0; h < group.size(); ++h) {
        const double seen = std::accumulate(weights[h].begin(), weights[h].end(), 0.0);
        result.mass[h] += seen / group[h]->row_sum(t.pos - group[h]->first_query);
      }
      if (view.awaits_attention(t.pos)) observe(view, t.pos, weights);
    }
    std::move(*step).commit();
  }
  result.resident_rows = text.head({0, 0}).resident_rows();
  return result;
}

// One prompt of two query heads on one KV head, and six policies.
struct trial {
  model_shape shape{1, 2, 1, 1};
  std::vector<recorded_map> maps;
  std::vector<ruled_policy> policies;
  group_maps group{nullptr, nullptr};
  profiler<test_policies> work{shape, {}, {}};

  explicit trial(std::uint32_t seed) {
    random_source random(seed);
    const bool ranks = random.one_in(2);  // and then every query must have been recorded
    maps = random_maps(random, shape, 1, random.below(4),
                       ranks ? recorded_queries::all : recorded_queries::last);
    for (const recorded_map& map : maps) group[map.query_head] = &map;
    measure_options options;
    options.use_ladder = false;
    while (policies.size() < 6) {
      ruled_policy chosen = random_policy(random);
      if (!ranks && chosen.pool > 0) continue;
      options.candidates.push_back({std::to_string(policies.size()), make_spec(chosen.policy)});
      policies.push_back(std::move(chosen));
    }
    work = profiler<test_policies>(shape, {}, options);
    for (const recorded_map& map : maps) work.add(map.view());
  }
  [[nodiscard]] double queries() const { return static_cast<double>(maps.front().queries); }
  [[nodiscard]] token_count length() const {
    return static_cast<token_count>(maps.front().keys.size());
  }
};

// The profiler scales each row with an error below 2^-28.
constexpr double recovery_bound = 1.0 / (1 << 27);
// A cache adds scores in float; where two are closer, it may keep the other token.
constexpr double score_bound = 1e-5;

TEST(profile_against_cache, recovery_is_the_mass_on_rows_that_the_cache_shows) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const trial t(seed);
    for (std::size_t c = 0; c < t.policies.size(); ++c) {
      const ruled_policy& policy = t.policies[c];
      if (policy.pool > 0) continue;
      const decoded real = decode(t.group, policy.policy);
      for (std::uint32_t h = 0; h < 2; ++h) {
        const double recovery = real.mass[h] / t.queries();
        ASSERT_NEAR(t.work.sums().table.recovery(0, h, c), recovery, recovery_bound)
            << "seed " << seed << " candidate " << c;
        ASSERT_NEAR(recovery, naive_recovery(t.maps, 0, h, policy.rule), 1e-12)
            << "seed " << seed << " candidate " << c;
      }
      const double rows = static_cast<double>(real.resident_rows);
      ASSERT_EQ(t.work.sums().table.resident_rows(c), rows) << "seed " << seed;
      ASSERT_EQ(rows, naive_rows(t.maps, policy.rule, t.length(), 0)) << "seed " << seed;
    }
  }
}

TEST(profile_against_cache, heavy_hitters_are_those_that_the_cache_keeps) {
  std::size_t compared = 0, close = 0;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const trial t(seed);
    for (std::size_t c = 0; c < t.policies.size(); ++c) {
      const ruled_policy& policy = t.policies[c];
      if (policy.pool == 0) continue;
      const decoded real = decode(t.group, policy.policy);
      const naive_hitters expected = follow(t.group, policy.rule, policy.pool);
      const double rows = static_cast<double>(real.resident_rows);
      ASSERT_EQ(t.work.sums().table.resident_rows(c), rows) << "seed " << seed;
      if (expected.margin < score_bound) {
        ++close;
        continue;
      }
      ++compared;
      for (position query = 1; query < t.length(); ++query) {
        std::set<position> seen = expected.kept[query - 1];
        seen.insert(query);
        ASSERT_EQ(real.visible[query], seen) << "seed " << seed << " candidate " << c;
      }
      for (std::uint32_t h = 0; h < 2; ++h)
        ASSERT_NEAR(t.work.sums().table.recovery(0, h, c), real.mass[h] / t.queries(), 1e-12)
            << "seed " << seed << " candidate " << c;
    }
  }
  EXPECT_GT(compared, 500U);
  EXPECT_LT(close, compared / 20);
}

}  // namespace
}  // namespace headwise_tests
