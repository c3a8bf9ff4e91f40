// SPDX-License-Identifier: Apache-2.0
//
// The cache that the saved sequences of saved_sequence_fuzzer belong to, and what an engine does
// with one.
#pragma once

#include <algorithm>
#include <vector>

#include "headwise/attend/attend.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/manager/saved_sequence.hpp"
#include "support/every_nth.hpp"
#include "support/random_policy.hpp"
#include "support/saved.hpp"

namespace headwise_tests {

using saved_manager = headwise::cache_manager<test_policies, headwise::f16, headwise::f32>;
using saved_text = saved_manager::sequence_type;

inline constexpr headwise::model_shape saved_shape{1, 10, 5, 2};
inline constexpr headwise::token_count saved_horizon = 5;

// A policy of every kind of state: no lifetime that ends, one, several, a pool alone and in unions.
[[nodiscard]] inline std::vector<test_policy> saved_plan() {
  using headwise::token_classes;
  const headwise::special_tokens special(token_classes::sink | token_classes::special);
  const headwise::local_window window(6);
  return {headwise::global{}, stranger::every_nth(4, 2, 9), headwise::heavy_hitters(3),
          headwise::union_of(window, headwise::heavy_hitters(5)),
          headwise::union_of(special, window, headwise::heavy_hitters(2))};
}
[[nodiscard]] inline saved_manager make_saved_cache(std::size_t pages) {
  headwise::cache_config config;
  config.page_tokens = 4;
  config.pages = pages;
  config.rollback_horizon = saved_horizon;
  return {saved_shape, saved_plan(), config};
}
[[nodiscard]] inline headwise::head_id saved_head(std::uint32_t head) {
  return {0, head};
}

// Looks at what the query sees of one head, as an engine would: by attend, or by a kernel of its
// own where its attention decides about heavy hitters, since the last bits of attend differ between
// machines and the seeds must not.
inline void attend_one(const saved_manager::view_type& view, headwise::position query,
                       random_source& random) {
  const std::size_t group = saved_shape.group_size(), d = saved_shape.head_dim;
  std::size_t seen = 0;
  view.for_each_slab(query, [&](const headwise::slab& s) { seen += s.count; });
  if (view.awaits_attention(query)) {
    const std::vector<float> weights = random.numbers(seen);
    return view.observe(query, {weights.data(), 1, seen});
  }
  headwise::attend_scratch scratch(saved_shape.group_size(), saved_shape.head_dim, seen);
  const std::vector<float> queries = random.numbers(group * d);
  std::vector<float> out(group * d), lse(group);
  headwise::attend(view, query, headwise::rows<const float>(queries.data(), group, d), 0.5F,
                   headwise::rows<float>(out.data(), group, d), lse, scratch);
}

// Appends `count` tokens, all heads written and attended. False: no memory.
inline bool grow(saved_text& text, std::uint32_t count, headwise::attend_scope scope,
                 random_source& random) {
  const headwise::position length = text.length();
  const bool prompt = scope == headwise::attend_scope::last_query;
  auto step = text.try_append(random_tokens(random, length, count), scope);
  if (!step) return false;
  for (std::uint32_t head = 0; head < saved_shape.kv_heads; ++head) {
    if (prompt && headwise::pool_rows_of(text.plan()[head], headwise::max_length) > 0)
      step->observe_prompt(saved_head(head), random.numbers(length + count));
    const std::vector<float> keys = random.numbers(count * saved_shape.head_dim);
    const std::vector<float> values = random.numbers(count * saved_shape.head_dim);
    step->write(saved_head(head), {keys.data(), count, saved_shape.head_dim},
                {values.data(), count, saved_shape.head_dim});
    for (headwise::position query = prompt ? length + count - 1 : length; query < length + count;
         ++query)
      attend_one(step->head(saved_head(head)), query, random);
  }
  std::move(*step).commit();
  return true;
}

}  // namespace headwise_tests
