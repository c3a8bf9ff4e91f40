// SPDX-License-Identifier: Apache-2.0
//
// The plans that benchmarks compare: every head global; and mixes as profiles give them, in which
// some heads of each layer are global and the others keep the sinks and a window, so that a stated
// share of the rows stays.
#pragma once

#include <vector>

#include "headwise/policy/policy_list.hpp"

namespace headwise_bench {

using policy = headwise::builtin_policies::variant;
inline constexpr headwise::token_count sink_count = 4;

[[nodiscard]] inline std::vector<policy> all_global(const headwise::model_shape& shape) {
  return std::vector<policy>(shape.heads(), headwise::global{});
}

// In every layer the first global_heads are global; the others share what is left of
// kept * kv_heads * length rows. kept * kv_heads > global_heads.
[[nodiscard]] inline std::vector<policy> mixed_plan(const headwise::model_shape& shape,
                                                    headwise::token_count length,
                                                    std::uint32_t global_heads, double kept) {
  const double local_heads = shape.kv_heads - global_heads;
  const double local_rows = (kept * shape.kv_heads - global_heads) * length / local_heads;
  const headwise::union_of near(
      headwise::special_tokens(headwise::token_classes::sink),
      headwise::local_window(static_cast<headwise::token_count>(local_rows) - sink_count));
  std::vector<policy> plan(shape.heads(), near);
  for (std::size_t head = 0; head < plan.size(); ++head)
    if (head % shape.kv_heads < global_heads) plan[head] = headwise::global{};
  return plan;
}
[[nodiscard]] inline std::vector<policy> half_plan(const headwise::model_shape& shape,
                                                   headwise::token_count length) {
  return mixed_plan(shape, length, shape.kv_heads * 3 / 8, 0.5);
}
[[nodiscard]] inline std::vector<policy> quarter_plan(const headwise::model_shape& shape,
                                                      headwise::token_count length) {
  return mixed_plan(shape, length, shape.kv_heads / 8, 0.25);
}

}  // namespace headwise_bench
