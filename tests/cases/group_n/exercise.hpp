// SPDX-License-Identifier: Apache-2.0
//
// Runs through the whole core with small numbers: a codec, every built-in policy, prompt, decode,
// eviction, scores shown and observed, cancel, fork, rollback, save and restore. The answer is one
// number that depends on all of it, and the same in every unit and build. In an unnamed namespace,
// so that each unit has code of its own.
#pragma once

#include <cmath>
#include <optional>
#include <sstream>
#include <variant>
#include <vector>

#include <headwise/headwise.hpp>
#include <headwise/manager/saved_sequence.hpp>

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
      : cache_(cache), shape_(cache.shape()), scratch_(shape_.group_size(), shape_.head_dim, 128) {}

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
        sum += write_and_attend(*step, {layer, head}, first, count, scope);
    if (commit) std::move(*step).commit();
    return sum;
  }

 private:
  template <class Step>
  double write_and_attend(Step& step, headwise::head_id head, headwise::position first,
                          std::size_t count, headwise::attend_scope scope) {
    const std::size_t d = shape_.head_dim;
    const std::size_t group = shape_.group_size();
    const bool prompt = scope == headwise::attend_scope::last_query;
    const auto end = first + static_cast<headwise::position>(count);
    const auto rows = rows_from(first, count, d, head.kv_head);
    const auto queries = rows_from(first + 1, group, d, head.layer);
    std::vector<float> out(group * d), lse(group);
    if (prompt && ranks(head)) step.observe_prompt(head, rows_from(3, end, 1, head.kv_head));
    step.write(head, {rows.data(), count, d}, {rows.data(), count, d});
    for (headwise::position query = prompt ? end - 1 : first; query < end; ++query) {
      // Every other layer is shown weights of our own, the others those of attend.
      if (head.layer % 2 == 0) observe(step.head(head), query);
      headwise::attend(step.head(head), query, {queries.data(), group, d}, 0.5F,
                       {out.data(), group, d}, lse, scratch_);
    }
    double sum = 0.0;
    for (const float x : out) sum += static_cast<double>(x);
    for (const float x : lse) sum += static_cast<double>(x);
    step.head(head).for_each_score([&](headwise::position pos, float score) {
      sum += static_cast<double>(score) * static_cast<double>(pos % 7);
    });
    return sum;
  }
  bool ranks(headwise::head_id head) const {
    const auto& policy = cache_.plan()[head.layer * shape_.kv_heads + head.kv_head];
    return headwise::pool_rows_of(policy, headwise::max_length) > 0;
  }
  template <class View>
  static void observe(const View& view, headwise::position query) {
    if (!view.awaits_attention(query)) return;
    std::vector<float> weights;
    view.for_each_slab(query, [&](const headwise::slab& s) {
      for (std::uint32_t r = 0; r < s.count; ++r)
        weights.push_back(static_cast<float>(s.positions[r] % 5) / 8.0F);
    });
    view.observe(query, {weights.data(), 1, weights.size()});
  }

  const Cache& cache_;
  headwise::model_shape shape_;
  headwise::attend_scratch scratch_;
};

// One head of each, in the order of the list.
inline std::vector<headwise::builtin_policies::variant> every_builtin_policy() {
  using namespace headwise;
  const special_tokens special(token_classes::special, {3, 7});
  const local_window window(3);
  static_assert(std::variant_size_v<builtin_policies::variant> == 8);
  return {global{},
          local_window(5),
          special,
          heavy_hitters(4),
          union_of(special, window),
          union_of(special, heavy_hitters(0.25, 6)),
          union_of(window, heavy_hitters(2)),
          union_of(special, window, heavy_hitters(3))};
}

template <headwise::row_codec Codec>
double exercise_codec() {
  using namespace headwise;
  using cache_type = cache_manager<builtin_policies, Codec>;
  const auto plan = every_builtin_policy();
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (plan[i].index() != i) return std::nan("");
  cache_type cache({2, 8, 4, 8}, plan, {.page_tokens = 4, .rollback_horizon = 2});
  runner<cache_type> run(cache);
  auto text = cache.open(20);
  double sum = run.append(text, 20, attend_scope::last_query, true);
  sum += run.append(text, 3, attend_scope::every_query, false);  // cancelled
  for (int i = 0; i < 20; ++i) sum += run.append(text, 1, attend_scope::every_query, true);
  auto twin = text.fork();
  if (!twin.try_rollback(2) || twin.try_rollback(20)) return std::nan("");
  sum += run.append(twin, 7, attend_scope::every_query, true);

  std::stringstream file;
  save(text, file);
  std::optional back = try_restore(cache, file);
  if (!back) return std::nan("");
  const double next = run.append(text, 1, attend_scope::every_query, true);
  if (!(run.append(*back, 1, attend_scope::every_query, true) == next)) return std::nan("");
  return sum + next +
         static_cast<double>(text.stats().resident_rows + twin.stats().payload_bytes +
                             saved_bytes(*back));
}

[[maybe_unused]] double exercise_core() {
  return exercise_codec<headwise::f16>();
}

}  // namespace
