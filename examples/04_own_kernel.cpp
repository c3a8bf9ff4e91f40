// SPDX-License-Identifier: Apache-2.0
//
// 04: the engine's own kernel. for_each_slab hands out exactly the rows that a query sees, as
// contiguous runs; this one-pass kernel turns each run into a partial result that can be merged, so
// runs may go to different threads or devices.
#include <cmath>
#include <cstdio>

#include "headwise/headwise.hpp"
#include "support/claims.hpp"
#include "support/toy_model.hpp"

namespace hw = headwise;

constexpr hw::model_shape shape{.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = 64};
constexpr hw::head_id head{0, 0};
constexpr hw::token_count length = 500;

// Attention over a part of the rows: their weighted values and the log of the sum of exponentials.
// The empty part is the identity of merge.
struct partial {
  float lse = -HUGE_VALF;
  std::vector<float> out = std::vector<float>(shape.head_dim, 0.0F);
};

partial merge(const partial& a, const partial& b) {
  const float top = std::max(a.lse, b.lse);
  if (top == -HUGE_VALF) return a;
  const float wa = std::exp(a.lse - top), wb = std::exp(b.lse - top);
  partial both{top + std::log(wa + wb), a.out};
  for (std::size_t i = 0; i < both.out.size(); ++i)
    both.out[i] = (wa * a.out[i] + wb * b.out[i]) / (wa + wb);
  return both;
}

// The kernel proper. A slab's keys are [count, head_dim] without gaps, in the key codec's encoding:
// f32 here, so a row is read as it lies. Other codecs have decode(), or a kernel of the engine's
// reads their documented bytes.
partial attend_slab(const hw::slab& slab, std::span<const float> query, float scale) {
  std::vector<float> key(shape.head_dim), value(shape.head_dim);
  partial result;
  float top = -HUGE_VALF, total = 0.0F;
  for (std::uint32_t r = 0; r < slab.count; ++r) {
    hw::f32::decode(slab.keys + r * hw::f32::row_bytes(key.size()), key);
    hw::f32::decode(slab.values + r * hw::f32::row_bytes(value.size()), value);
    float logit = 0.0F;
    for (std::size_t i = 0; i < key.size(); ++i) logit += scale * query[i] * key[i];
    const float new_top = std::max(top, logit);
    const float shrink = std::exp(top - new_top), weight = std::exp(logit - new_top);
    total = total * shrink + weight;
    for (std::size_t i = 0; i < value.size(); ++i)
      result.out[i] = result.out[i] * shrink + weight * value[i];
    top = new_top;
  }
  for (float& element : result.out) element /= total;
  result.lse = top + std::log(total);
  return result;
}

int main() {
  const toy_model model(shape, length);
  using policies = hw::builtin_policies;
  hw::cache_manager<policies, hw::f32> cache(
      shape, {hw::union_of(hw::special_tokens(hw::token_classes::sink), hw::local_window(200))},
      {});
  auto text = cache.open();
  const std::vector<std::int32_t> ids(length, 0);
  const auto tokens = hw::token_classifier(4).tokens(ids);
  auto step = text.try_append(tokens, hw::attend_scope::last_query);
  if (!step) return 1;
  step->write(head, model.keys(head, 0, length), model.values(head, 0, length));

  const hw::position query = length - 1;
  const std::span<const float> query_row = model.queries(head, query)[0];
  partial forwards, backwards;
  std::size_t slabs = 0, seen = 0;
  step->head(head).for_each_slab(query, [&](const hw::slab& slab) {
    const partial part = attend_slab(slab, query_row, model.scale());
    std::printf("slab %2zu: %2u rows, positions %3u to %3u, lse %.4f\n", slabs++, slab.count,
                slab.positions[0], slab.positions[slab.count - 1], double{part.lse});
    forwards = merge(forwards, part);
    backwards = merge(part, backwards);
    seen += slab.count;
  });

  std::vector<float> out(shape.head_dim);
  float lse = 0.0F;
  hw::attend_scratch scratch(1, shape.head_dim, length);
  hw::attend(step->head(head), query, model.queries(head, query), model.scale(),
             {out.data(), 1, out.size()}, {&lse, 1}, scratch);
  std::move(*step).commit();

  claims claims;
  claims.check(seen == 4 + 200, "the slabs hold the sinks and the window, each row once");
  claims.check(difference(forwards.out, out) < 1e-5F && std::abs(forwards.lse - lse) < 1e-5F,
               "the own kernel and headwise::attend agree, log-sum-exp included");
  claims.check(difference(forwards.out, backwards.out) < 1e-5F,
               "partial results merge in any order");
  return claims.exit_code();
}
