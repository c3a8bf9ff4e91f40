// SPDX-License-Identifier: Apache-2.0

#include "attention_reference.hpp"

#include <algorithm>
#include <cmath>

#include <ggml.h>

namespace headwise_llama_cpp {
attention_reference::attention_reference(const headwise::model_shape& shape,
                                         std::span<const float> scales, layer_rows* store,
                                         std::size_t tokens)
    : shape_(shape),
      width_(std::size_t{shape.kv_heads} * shape.head_dim),
      scales_(scales.begin(), scales.end()),
      store_(store),
      layers_(shape.layers),
      new_keys_(tokens * width_),
      weights_(tokens),
      query_(shape.head_dim),
      expected_(shape.head_dim),
      differences_(shape.layers) {
  for (layer_kept& layer : layers_) {
    layer.keys.resize(tokens * width_);
    layer.values.resize(tokens * width_);
  }
}

float attention_reference::as_read(float x) const noexcept {
  return store_ == nullptr ? ggml_fp16_to_fp32(ggml_fp32_to_fp16(x)) : x;
}

void attention_reference::keep(const headwise::rows<const float>& from, float* to) const noexcept {
  for (std::size_t i = 0; i < from.count; ++i)
    for (const float x : from[i]) *to++ = as_read(x);
}

void attention_reference::add_keys(worker self, headwise::rows<const float> keys) noexcept {
  if (self.index == 0) keep(keys, new_keys_.data());
  if (store_ != nullptr) store_->add_keys(self, keys);
}

void attention_reference::add_values(worker self, std::uint32_t layer,
                                     headwise::rows<const float> values) noexcept {
  if (self.index == 0) {
    layer_kept& kept = layers_[layer];
    const std::size_t begin = kept.count * width_;
    std::copy_n(new_keys_.data(), values.count * width_, kept.keys.data() + begin);
    keep(values, kept.values.data() + begin);
    kept.count += values.count;
  }
  if (store_ != nullptr) store_->add_values(self, layer, values);
}

void attention_reference::attend(worker self, std::uint32_t layer,
                                 headwise::rows<const float> queries, float scale,
                                 headwise::rows<float> out) noexcept {
  if (store_ != nullptr) store_->attend(self, layer, queries, scale, out);
  if (ended_.is_last(self.count))
    judge(layer, queries, double{scales_.empty() ? scale : scales_[layer]}, out);
}

void attention_reference::judge(std::uint32_t layer, const headwise::rows<const float>& queries,
                                double scale, const headwise::rows<const float>& out) noexcept {
  const layer_kept& kept = layers_[layer];
  const std::size_t d = shape_.head_dim, before = kept.count - queries.count;
  double apart = 0.0, size = 0.0;
  for (std::size_t t = 0; t < queries.count; ++t)
    for (std::size_t head = 0; head < shape_.query_heads; ++head) {
      compute(kept, before + t + 1, head, queries[t].data() + head * d, scale);
      for (std::size_t i = 0; i < d; ++i) {
        const double difference = double{out[t][head * d + i]} - expected_[i];
        apart += difference * difference;
        size += expected_[i] * expected_[i];
      }
    }
  const double share = apart == 0.0 ? 0.0 : std::sqrt(apart / size);
  double& most = differences_[layer];
  if (!std::isnan(most) && !(share <= most)) most = share;
}

void attention_reference::compute(const layer_kept& layer, std::size_t seen, std::size_t head,
                                  const float* query, double scale) noexcept {
  const std::size_t d = shape_.head_dim, first = head / shape_.group_size() * d;
  for (std::size_t i = 0; i < d; ++i) query_[i] = as_read(query[i]);
  double top = -HUGE_VAL, sum = 0.0;
  for (std::size_t row = 0; row < seen; ++row) {
    const float* const key = layer.keys.data() + row * width_ + first;
    double product = 0.0;
    for (std::size_t i = 0; i < d; ++i) product += double{query_[i]} * double{key[i]};
    weights_[row] = product * scale;
    top = std::max(top, weights_[row]);
  }
  std::fill(expected_.begin(), expected_.end(), 0.0);
  for (std::size_t row = 0; row < seen; ++row) {
    const double weight = std::exp(weights_[row] - top);
    const float* const value = layer.values.data() + row * width_ + first;
    for (std::size_t i = 0; i < d; ++i) expected_[i] += weight * double{value[i]};
    sum += weight;
  }
  for (double& x : expected_) x /= sum;
}

}  // namespace headwise_llama_cpp
