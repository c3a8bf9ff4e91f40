// SPDX-License-Identifier: Apache-2.0
//
// Fault group I, the profiler's side: nothing that is not a number gets into a blueprint.
#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/files.hpp"
#include "support/recorded_maps.hpp"

namespace {

using namespace headwise_tests;

TEST(fault_cases, I21_head_without_a_query) {
  random_source random(1);
  const model_shape shape{2, 2, 1, 8};
  const std::vector<recorded_map> maps = random_maps(random, shape, 1, 0);
  headwise::profile_options options;
  options.measure.skip_queries = 1000;
  recorded_source source{shape, &maps};
  expect_error(headwise::error_code::missing, {"layer 0", "query head 0", "no calibration query"},
               [&] { static_cast<void>(headwise::profile(source, {}, {}, options)); });
  // A length at which no token lies behind the sinks, where a share of them would be 0 / 0.
  options.measure = {};
  options.measure.length = 3;
  source.next_map = 0;
  for (const headwise::head_plan& head : headwise::profile(source, {8, {}}, {}, options).heads) {
    EXPECT_TRUE(head.forever_fraction >= 0.0 && head.forever_fraction <= 1.0);
    EXPECT_TRUE(head.resident_fraction > 0.0 && head.resident_fraction <= 1.0);
  }
}

}  // namespace
