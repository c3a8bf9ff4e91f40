// SPDX-License-Identifier: Apache-2.0
//
// What each candidate that learns ids would win back with an id: against a loop over all weights.

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"
#include "support/spec_rule.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

// The mass on tokens of the id that queries from `skip` on do not see.
template <class Rule>
double lost_on(const std::vector<recorded_map>& maps, std::uint32_t layer, std::uint32_t query_head,
               std::int32_t id, const Rule& rule, position skip) {
  double lost = 0.0;
  for (const recorded_map& map : maps) {
    if (map.layer != layer || map.query_head != query_head) continue;
    for (std::size_t row = 0; row < map.queries; ++row) {
      const std::size_t query = map.first_query + row;
      for (std::size_t key = 0; key < map.keys.size(); ++key)
        if (query >= skip && map.keys[key].id == id && query >= key + rule(map.keys[key]))
          lost += static_cast<double>(map.at(row, key)) / map.row_sum(row);
    }
  }
  return lost;
}

TEST(learned_gain, is_the_mass_that_is_lost_on_the_id) {
  const model_shape shape{2, 4, 2, 8};
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    random_source random(seed);
    const std::vector<recorded_map> maps = random_maps(random, shape, 3, 2);
    measure_options options;
    options.length = 40;
    options.skip_queries = seed % 2 == 0 ? 0 : 5;
    options.ladder.windows = {3, 9};
    profiler<> work(shape, {2, {}}, options);
    for (const recorded_map& map : maps) work.add(map.view());
    std::size_t learner = 0;
    for (const candidate& c : work.candidates()) {
      if (!c.learns_ids) continue;
      const auto rule = rule_of(c.policy);
      const std::span<const std::int32_t> ids = work.sums().learned.ids();
      for (std::uint32_t slot = 0; slot < ids.size(); ++slot)
        for (std::uint32_t layer = 0; layer < shape.layers; ++layer)
          for (std::uint32_t head = 0; head < shape.query_heads; ++head)
            ASSERT_NEAR(work.sums().learned.gain(slot, layer, head, learner),
                        lost_on(maps, layer, head, ids[slot], rule, options.skip_queries), 0x1p-22)
                << "seed " << seed << ' ' << c.name << " id " << ids[slot];
      ++learner;
    }
    ASSERT_EQ(learner, 3U);  // without a window and with each
  }
}

}  // namespace
}  // namespace headwise_tests
