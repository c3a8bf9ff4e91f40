// SPDX-License-Identifier: Apache-2.0
//
// Size, alignment and last member of the types that programs hand from one unit to another.
#pragma once

#include <cstddef>
#include <vector>

#include <headwise/headwise.hpp>

namespace {

template <class... Ts>
void add_sizes(std::vector<std::size_t>& numbers) {
  (numbers.insert(numbers.end(), {sizeof(Ts), alignof(Ts)}), ...);
}

[[maybe_unused]] std::vector<std::size_t> layout_of_core() {
  using namespace headwise;
  using cache = cache_manager<>;
  std::vector<std::size_t> numbers;
  add_sizes<token, model_shape, head_id, lifetime_set, rows<const float>, slab, page_layout>(
      numbers);
  add_sizes<global, local_window, special_tokens, heavy_hitters, builtin_policies::variant,
            policy_spec>(numbers);
  add_sizes<model_fingerprint, token_rules, provenance, head_plan, blueprint, error>(numbers);
  add_sizes<cache_config, cache_stats, manager_stats, cache, cache::sequence_type, cache::step_type,
            cache::view_type, attend_scratch, token_classifier>(numbers);
  add_sizes<detail::token_stream, detail::ranked_pool, detail::page_block,
            detail::sequence_state<builtin_policies>>(numbers);
  numbers.insert(numbers.end(),
                 {offsetof(token, classes), offsetof(slab, count), offsetof(cache_config, memory),
                  offsetof(cache_stats, reserved_bytes)});
  return numbers;
}

}  // namespace
