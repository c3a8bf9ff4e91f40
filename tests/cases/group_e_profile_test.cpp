// SPDX-License-Identifier: Apache-2.0
//
// Fault group E, from the profiler to the decode path: query heads share KV heads in order.
#include <gtest/gtest.h>

#include "headwise/codec/f32.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"

namespace {

using namespace headwise_tests;

// Query heads of KV head j look j tokens back, so KV head j needs a window of j + 1.
TEST(fault_cases, E02_query_heads_in_order) {
  const std::vector<model_shape> shapes{{1, 4, 2, 8}, {1, 6, 3, 8}};
  const std::vector<std::vector<std::uint32_t>> kv_heads{{0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}};
  constexpr std::uint32_t tokens = 12;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    random_source random(1);
    std::vector<recorded_map> maps;
    for (std::uint32_t head = 0; head < shapes[s].query_heads; ++head) {
      maps.push_back(make_map(random_prompt(random, tokens, 0),
                              std::vector<float>(tokens * tokens, 0.0F), 0, head));
      maps.back().keys = maps.front().keys;
      for (std::uint32_t query = 0; query < tokens; ++query)
        maps.back().at(query, query - std::min(query, kv_heads[s][head])) = 1.0F;
    }
    headwise::profile_options options;
    options.classify.recovery_target = 1.0;
    options.measure.use_ladder = false;
    for (token_count window = 1; window < 4; ++window)
      options.measure.candidates.push_back(
          {std::to_string(window), make_spec(headwise::local_window(window))});
    recorded_source source{shapes[s], &maps};
    const headwise::blueprint plan = headwise::profile(source, {}, {}, options);
    headwise::cache_manager<headwise::builtin_policies, headwise::f32> cache(plan, {});
    auto text = cache.open();
    const std::vector<float> row(8, 0.0F);
    for (const token& t : maps.front().keys) {
      auto step = text.try_append({&t, 1});
      ASSERT_TRUE(step);
      for (std::uint32_t j = 0; j < shapes[s].kv_heads; ++j)
        step->write({0, j}, {row.data(), 1, 8}, {row.data(), 1, 8});
      std::move(*step).commit();
    }
    for (std::uint32_t j = 0; j < shapes[s].kv_heads; ++j) {
      EXPECT_EQ(plan.head({0, j}).policy, make_spec(headwise::local_window(j + 1)));
      EXPECT_EQ(text.head({0, j}).resident_rows(), j + 1);
    }
  }
}

}  // namespace
