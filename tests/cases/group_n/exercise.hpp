// SPDX-License-Identifier: Apache-2.0
//
// Runs through the whole core with small numbers: a codec, every built-in policy, prompt, decode,
// eviction, cancel, fork, rollback. The answer is one number that depends on all of it, and the
// same in every unit and build. In an unnamed namespace, so that each unit has code of its own.
#pragma once

#include <cmath>
#include <vector>

#include <headwise/headwise.hpp>

namespace {

// Rows whose elements tell position and head apart, exact in every codec.
inline std::vector<float> rows_from(headwise::position first, std::size_t count, std::size_t width,
                                    std::uint32_t head) {
  std::vector<float> result;
  for (std::size_t i = 0; i < count * width; ++i)
    result.push_back(static_cast<float>((i * 7 + first * 3 + head * 5) % 16) / 8.0F - 1.0F);
  return result;
}

inline std::vector<headwise::token> tokens_from(headwise::position first, std::size_t count) {
  std::vector<headwise::token> result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pos = first + static_cast<headwise::position>(i);
    result.push_back(
        {pos, static_cast<std::int32_t>(pos % 11),
         pos % 5 == 0 ? headwise::token_classes::special : headwise::token_classes::none});
  }
  return result;
}

template <class Cache>
class runner {
 public:
  explicit runner(Cache& cache)
      : shape_(cache.shape()), scratch_(shape_.group_size(), shape_.head_dim, 128) {}

  // Appends `count` tokens and returns the sum of what the newest one attended to.
  template <class Sequence>
  double append(Sequence& text, std::size_t count, headwise::attend_scope scope, bool commit) {
    const headwise::position first = text.length();
    const auto tokens = tokens_from(first, count);
    auto step = text.try_append(tokens, scope);
    if (!step) return std::nan("");
    double sum = 0.0;
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer)
      for (std::uint32_t head = 0; head < shape_.kv_heads; ++head)
        sum += write_and_attend(*step, {layer, head}, first, count);
    if (commit) std::move(*step).commit();
    return sum;
  }

 private:
  template <class Step>
  double write_and_attend(Step& step, headwise::head_id head, headwise::position first,
                          std::size_t count) {
    const std::size_t d = shape_.head_dim;
    const std::size_t group = shape_.group_size();
    const auto rows = rows_from(first, count, d, head.kv_head);
    const auto queries = rows_from(first + 1, group, d, head.layer);
    std::vector<float> out(group * d), lse(group);
    step.write(head, {rows.data(), count, d}, {rows.data(), count, d});
    headwise::attend(step.head(head), first + static_cast<headwise::position>(count) - 1,
                     {queries.data(), group, d}, 0.5F, {out.data(), group, d}, lse, scratch_);
    double sum = 0.0;
    for (const float x : out) sum += static_cast<double>(x);
    for (const float x : lse) sum += static_cast<double>(x);
    return sum;
  }

  headwise::model_shape shape_;
  headwise::attend_scratch scratch_;
};

template <headwise::row_codec Codec>
double exercise_codec() {
  using namespace headwise;
  const special_tokens special(token_classes::special, {3, 7});
  using cache_type = cache_manager<builtin_policies, Codec>;
  cache_type cache({2, 4, 2, 8},
                   {global{}, local_window(5), special,
                    union_of<special_tokens, local_window>(special, local_window(3))},
                   {.page_tokens = 4, .rollback_horizon = 2});
  runner<cache_type> run(cache);
  auto text = cache.open();
  double sum = run.append(text, 20, attend_scope::last_query, true);
  sum += run.append(text, 3, attend_scope::every_query, false);  // cancelled
  for (int i = 0; i < 20; ++i) sum += run.append(text, 1, attend_scope::every_query, true);
  auto twin = text.fork();
  if (!twin.try_rollback(2) || twin.try_rollback(20)) return std::nan("");
  sum += run.append(twin, 7, attend_scope::every_query, true);
  sum += run.append(text, 1, attend_scope::every_query, true);
  return sum + static_cast<double>(text.stats().resident_rows + twin.stats().payload_bytes);
}

[[maybe_unused]] double exercise_core() {
  return exercise_codec<headwise::f16>();
}

}  // namespace
