// SPDX-License-Identifier: Apache-2.0
//
// The plans that benchmarks compare: every head global; mixes in which some heads of each layer are
// global and the others keep the sinks and a window; and a mix over a whole stack of layers, as
// profiles give them. Of a mix a stated share of the rows stays.
#pragma once

#include <array>
#include <vector>

#include "headwise/policy/policy_list.hpp"

namespace headwise_bench {

using policy = headwise::builtin_policies::variant;
inline constexpr headwise::token_count sink_count = 4;

// Sinks first, then punctuation every 8th token.
[[nodiscard]] inline headwise::token token_at(headwise::position pos) {
  return {pos, 0,
          pos < sink_count ? headwise::token_classes::sink
          : pos % 8 == 0   ? headwise::token_classes::punctuation
                           : headwise::token_classes::none};
}
[[nodiscard]] inline bool newest_sees(const policy& head, headwise::token_count length,
                                      headwise::position pos) {
  return headwise::sees(length - 1, pos, headwise::lifetime_of(head, token_at(pos)));
}
// The rows that the newest of `length` tokens sees.
[[nodiscard]] inline std::size_t rows_seen(const policy& head, headwise::token_count length) {
  std::size_t count = 0;
  for (headwise::position pos = 0; pos < length; ++pos) count += newest_sees(head, length, pos);
  return count;
}

[[nodiscard]] inline policy sinks_and_window(headwise::token_count window) {
  return headwise::union_of(headwise::special_tokens(headwise::token_classes::sink),
                            headwise::local_window(window));
}
[[nodiscard]] inline policy sinks_and_punctuation() {
  return headwise::special_tokens(headwise::token_classes::sink |
                                  headwise::token_classes::punctuation);
}

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
  std::vector<policy> plan(
      shape.heads(), sinks_and_window(static_cast<headwise::token_count>(local_rows) - sink_count));
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

inline constexpr std::array<headwise::token_count, 6> short_windows{16, 32, 64, 128, 256, 512};

// The windows by turns, a head of special tokens after them, and global heads scattered over all
// layers, as many as it takes to keep the stated share; one head's window takes up what is left.
[[nodiscard]] inline std::vector<policy> scattered_plan(const headwise::model_shape& shape,
                                                        headwise::token_count length, double kept) {
  std::vector<policy> plan;
  for (std::size_t head = 0, turn = 0; head < shape.heads(); ++head, ++turn)
    plan.push_back(turn % 7 == 6 ? sinks_and_punctuation()
                                 : sinks_and_window(short_windows[turn % 7]));
  double left = kept * static_cast<double>(shape.heads()) * length;
  for (const policy& head : plan) left -= static_cast<double>(rows_seen(head, length));
  for (std::size_t i = 0; i < plan.size(); ++i) {
    policy& head = plan[i * 37 % plan.size()];  // 37 is prime to any power of two
    const double rows = static_cast<double>(rows_seen(head, length));
    if (length - rows > left) {
      head = sinks_and_window(static_cast<headwise::token_count>(rows + left) - sink_count);
      return plan;
    }
    left -= length - rows;
    head = headwise::global{};
  }
  return plan;
}

}  // namespace headwise_bench
