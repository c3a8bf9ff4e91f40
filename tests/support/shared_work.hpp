// SPDX-License-Identifier: Apache-2.0
//
// Maps of a few prompts with weights whose sums do round, for profilers that share the heads:
// candidates that learn ids and candidates that rank are among theirs.
#pragma once

#include <vector>

#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {

struct shared_work {
  model_shape shape{3, 4, 2, 8};
  headwise::token_rules rules{2, {}};
  headwise::measure_options options;
  std::vector<recorded_map> maps;

  explicit shared_work(std::uint32_t seed) {
    random_source random(seed);
    options.length = 50;
    options.ladder.windows = {2, 5, 11};
    options.ladder.heavy_hitters = {0.2};
    options.max_tracked_ids = 8;  // fewer than there are
    maps = random_maps(random, shape, 4, rules.sink_count, recorded_queries::all);
  }
  [[nodiscard]] headwise::profiler<> empty(headwise::head_share share) const {
    return {shape, rules, options, share};
  }
  [[nodiscard]] headwise::profiler<> measured(headwise::head_share share) const {
    headwise::profiler<> work = empty(share);
    measure(work);
    return work;
  }
  void measure(headwise::profiler<>& work) const {
    recorded_source source{shape, &maps};
    while (const auto map = source.next())
      if (work.takes(*map)) work.add(*map);
  }
  [[nodiscard]] std::vector<headwise::profiler<>> parts(std::uint32_t count) const {
    std::vector<headwise::profiler<>> parts;
    for (std::uint32_t i = 0; i < count; ++i) parts.push_back(measured({i, count}));
    return parts;
  }
  [[nodiscard]] attention_map_view first_map_of(const headwise::profiler<>& work) const {
    recorded_source source{shape, &maps};
    while (true)
      if (const auto map = source.next(); work.takes(*map)) return *map;
  }
};

}  // namespace headwise_tests
