// SPDX-License-Identifier: Apache-2.0
//
// ranked_measurement: what candidates that rank lose, by running the cache's rule
// (ranked_simulation.hpp) over the maps of one prompt and KV head, all query heads together. So the
// maps of a group are held until the last of them is there, whatever the order in which they come.
//
// A map [queries, keys]: O(queries * keys) to hold it; a group's last one in addition
// O(candidates * queries * (seen * group + pool)). Memory: as float, the maps of the groups that
// are incomplete: of one, where a layer's heads come together, of a prompt at most. Nothing is held
// where no candidate ranks. One thread at a time.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "headwise/profile/map_check.hpp"
#include "headwise/profile/ranked_simulation.hpp"
#include "headwise/profile/recovery_table.hpp"

HEADWISE_NAMESPACE_BEGIN

struct ranked_candidate {
  std::size_t candidate = 0;             // in the recovery_table
  token_count pool_rows = 0;             // at the stated length
  std::vector<token_count> lifetimes{};  // [keys], of the prompt in hand
};

class ranked_measurement {
 public:
  ranked_measurement() = default;
  explicit ranked_measurement(const model_shape& shape) : group_(shape.group_size()) {}

  [[nodiscard]] std::vector<ranked_candidate>& candidates() noexcept { return candidates_; }

  // map: checked, with every query from position 0 on. Queries at positions before skip_queries are
  // simulated but do not count.
  void add(const attention_map_view& map, position skip_queries, recovery_table& table) {
    if (candidates_.empty()) return;
    const head_id head{map.layer, map.query_head / group_};
    held_group& held = held_[head];
    hold(map, held);
    if (++held.maps < group_) return;
    for (const ranked_candidate& c : candidates_) measure(c, head, held, skip_queries, table);
    held_.erase(head);
  }

 private:
  struct held_group {
    std::uint32_t maps = 0;
    std::size_t queries = 0, keys = 0;
    std::vector<float> weights;    // [group, queries, keys]
    std::vector<double> row_sums;  // [group, queries]
  };

  void hold(const attention_map_view& map, held_group& held) const {
    const detail::map_kernels kernels = detail::map_kernels_at(map.weights.type, width_);
    held.queries = map.weights.count;
    held.keys = map.weights.width;
    held.weights.resize(group_ * held.queries * held.keys);
    held.row_sums.resize(group_ * held.queries);
    const std::size_t first = (map.query_head % group_) * held.queries;
    for (std::size_t query = 0; query < held.queries; ++query) {
      map.weights.copy_row(query, {held.weights.data() + (first + query) * held.keys, held.keys});
      held.row_sums[first + query] =
          kernels.scan({map.weights.row(query).data(), query + 1, held.keys}).sum;
    }
  }
  void measure(const ranked_candidate& c, head_id head, const held_group& held,
               position skip_queries, recovery_table& table) const {
    ranked_simulation simulation(c.lifetimes, c.pool_rows);
    std::vector<double> seen(group_), lost(group_, 0.0);
    const std::uint64_t counted = held.queries - std::min<std::size_t>(held.queries, skip_queries);
    for (std::size_t query = 0; query < held.queries; ++query) {
      const bool sees_all = simulation.kept().size() == query;
      simulation.attend(
          {held.weights.data() + query * held.keys, group_, held.keys, held.queries * held.keys},
          seen);
      if (query < skip_queries || sees_all) continue;
      for (std::size_t h = 0; h < group_; ++h)
        lost[h] += std::max(0.0, 1.0 - seen[h] / held.row_sums[h * held.queries + query]);
    }
    for (std::uint32_t h = 0; h < group_; ++h)
      table.add_lost(head.layer, head.kv_head * group_ + h, c.candidate, lost[h], counted);
  }

  simd_width width_ = widest_simd();
  std::uint32_t group_ = 1;
  std::vector<ranked_candidate> candidates_;
  std::map<head_id, held_group> held_;  // incomplete, of the prompt in hand
};

HEADWISE_NAMESPACE_END
