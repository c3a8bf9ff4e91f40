// SPDX-License-Identifier: Apache-2.0
//
// The promise that offline and online cannot drift apart: the recovery that the profiler states is
// the attention mass on the rows that a real cache hands to a kernel, and the resident rows that it
// states are those that the cache holds. Both are what the policy's rule says, written out.

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

struct kept {
  double mass = 0.0;
  std::uint64_t queries = 0;
  std::size_t resident_rows = 0;
};

// Decodes the map's prompt token by token on one head and adds up, for each of the map's queries,
// the weights of the rows that the head shows it.
kept decode(const recorded_map& map, const test_policy& policy) {
  cache manager({1, 1, 1, 1}, {policy}, {});
  auto text = manager.open();
  const float zero = 0.0F;
  kept result;
  for (const token& t : map.keys) {
    auto step = text.try_append({&t, 1});
    if (!step) throw std::runtime_error("no pages");
    step->write({0, 0}, {&zero, 1, 1}, {&zero, 1, 1});
    if (t.pos >= map.first_query) {
      const float* weights = map.weights.data() + (t.pos - map.first_query) * map.keys.size();
      double seen = 0.0, all = 0.0;
      step->head({0, 0}).for_each_slab(t.pos, [&](const slab& s) {
        for (std::uint32_t i = 0; i < s.count; ++i)
          seen += static_cast<double>(weights[s.positions[i]]);
      });
      for (std::size_t key = 0; key < map.keys.size(); ++key)
        all += static_cast<double>(weights[key]);
      result.mass += seen / all;
      ++result.queries;
    }
    std::move(*step).commit();
  }
  result.resident_rows = text.head({0, 0}).resident_rows();
  return result;
}

TEST(profile_against_cache, recovery_is_the_mass_on_rows_that_the_cache_shows) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    random_source random(seed);
    const model_shape shape{1, 2, 1, 1};
    const std::vector<recorded_map> maps = random_maps(random, shape, 1, random.below(4));
    measure_options options;
    options.use_ladder = false;
    std::vector<ruled_policy> policies;
    for (std::uint32_t c = 0; c < 6; ++c) {
      policies.push_back(random_policy(random));
      options.candidates.push_back({std::to_string(c), make_spec(policies.back().policy)});
    }
    profiler<test_policies> work(shape, {}, options);
    for (const recorded_map& map : maps) work.add(map.view());
    for (const recorded_map& map : maps)
      for (std::size_t c = 0; c < policies.size(); ++c) {
        const kept real = decode(map, policies[c].policy);
        // The profiler scales each row with an error below 2^-28.
        ASSERT_NEAR(work.sums().table.recovery(0, map.query_head, c),
                    real.mass / static_cast<double>(real.queries), 1.0 / (1 << 27))
            << "seed " << seed << " candidate " << c;
        ASSERT_EQ(work.sums().table.resident_rows(c), static_cast<double>(real.resident_rows))
            << "seed " << seed << " candidate " << c;
        const lifetime_rule& rule = policies[c].rule;
        ASSERT_NEAR(real.mass / static_cast<double>(real.queries),
                    naive_recovery(maps, 0, map.query_head, rule), 1e-12)
            << "seed " << seed << " candidate " << c;
        ASSERT_EQ(static_cast<double>(real.resident_rows),
                  naive_rows(maps, rule, static_cast<token_count>(map.keys.size()), 0))
            << "seed " << seed << " candidate " << c;
      }
  }
}

}  // namespace
}  // namespace headwise_tests
