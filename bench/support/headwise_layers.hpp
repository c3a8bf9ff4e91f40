// SPDX-License-Identifier: Apache-2.0
//
// headwise_layers: the layers of a headwise cache, filled with the rows of a problem.
#pragma once

#include "headwise/headwise.hpp"
#include "support/layer_problem.hpp"

namespace headwise_bench {

// layer_plan: [kv_heads], the same in each layer. Up to `workers` threads attend at a time.
template <headwise::row_codec Key, headwise::row_codec Value = Key>
class headwise_layers {
 public:
  headwise_layers(const problem& p, const std::vector<policy>& layer_plan, unsigned workers)
      : problem_(p),
        layer_bytes_(rows_of(p, layer_plan) * p.row_bytes<Key, Value>()),
        shape_(p.shape(problem::cold_layers(layer_bytes_))),
        expected_(reference_checksum<Key, Value>(p, layer_plan)),
        cache_(shape_, repeated(layer_plan, shape_.layers), {}),
        text_(cache_.open()) {
    for (unsigned worker = 0; worker < workers; ++worker)
      scratch_.emplace_back(p.group_size, p.head_dim, p.length);
    const inputs& in = inputs_of(p);
    std::vector<headwise::token> tokens;
    for (headwise::position pos = 0; pos < p.length; ++pos) tokens.push_back(token_at(pos));
    auto step = text_.try_append(tokens, headwise::attend_scope::last_query);
    for (headwise::head_id head; head.layer < shape_.layers; ++head.layer)
      for (head.kv_head = 0; head.kv_head < kv_heads; ++head.kv_head)
        step->write(head, in.keys.view(head.kv_head, 0, p.length),
                    in.values.view(head.kv_head, 0, p.length));
    std::move(*step).commit();
  }

  void attend(unsigned worker, std::size_t layer, std::uint32_t head,
              headwise::rows<const float> queries, headwise::rows<float> out) {
    headwise::attend(text_.head({static_cast<std::uint32_t>(layer), head}), problem_.length - 1,
                     queries, problem_.scale(), out, {}, scratch_[worker]);
  }
  [[nodiscard]] std::size_t layers() const { return shape_.layers; }
  [[nodiscard]] std::size_t layer_bytes() const { return layer_bytes_; }
  [[nodiscard]] std::size_t held_bytes() const {
    return text_.stats().held_bytes() / shape_.layers;
  }
  [[nodiscard]] double kept_ratio() const { return text_.stats().kept_ratio(); }
  [[nodiscard]] double expected() const { return expected_; }

 private:
  [[nodiscard]] static std::size_t rows_of(const problem& p, const std::vector<policy>& plan) {
    std::size_t count = 0;
    for (const policy& head : plan) count += rows_seen(head, p.length);
    return count;
  }
  [[nodiscard]] static std::vector<policy> repeated(const std::vector<policy>& layer_plan,
                                                    std::uint32_t layers) {
    std::vector<policy> plan;
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      plan.insert(plan.end(), layer_plan.begin(), layer_plan.end());
    return plan;
  }

  using manager = headwise::cache_manager<headwise::builtin_policies, Key, Value>;
  problem problem_;
  std::size_t layer_bytes_;
  headwise::model_shape shape_;
  double expected_;
  manager cache_;
  typename manager::sequence_type text_;
  std::vector<headwise::attend_scratch> scratch_;  // [workers]
};

}  // namespace headwise_bench
