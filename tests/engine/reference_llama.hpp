// SPDX-License-Identifier: Apache-2.0
//
// A Llama forward pass with a full cache, in double and plain loops: what the engine's logits and
// attention are checked against. It reads the engine's weights and none of its arithmetic.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "llama/model.hpp"

namespace headwise_tests {

// Does the query see the key? Positions; asked for key <= query only.
using visibility = std::function<bool(std::uint32_t layer, std::uint32_t kv_head, std::size_t query,
                                      std::size_t key)>;

class reference_llama {
 public:
  using vector = std::vector<double>;
  using table = std::vector<vector>;  // [tokens][width]

  explicit reference_llama(const llama_example::model& weights, visibility sees = {})
      : model_(weights), sees_(std::move(sees)) {}

  // [tokens][vocabulary]
  [[nodiscard]] table logits(std::span<const std::int32_t> ids) {
    table x;
    attention_.clear();
    for (const std::int32_t id : ids) {
      const auto row = model_.embeddings().row(static_cast<std::size_t>(id));
      x.emplace_back(row.begin(), row.end());
    }
    for (std::uint32_t layer = 0; layer < model_.shape().layers; ++layer) run_layer(layer, x);
    for (vector& token : x) token = product(model_.output(), norm(token, model_.output_norm()));
    return x;
  }

  // Keeps the attention of every call from now on.
  void record() { recording_ = true; }
  // Of the last call: [layers][query_heads][queries][keys], 0 where a key is not seen.
  [[nodiscard]] const std::vector<std::vector<table>>& attention() const { return attention_; }

 private:
  static vector product(const llama_example::matrix& weights, const vector& x) {
    vector result(weights.outputs);
    for (std::size_t o = 0; o < weights.outputs; ++o) {
      const auto row = weights.row(o);
      for (std::size_t i = 0; i < row.size(); ++i) result[o] += double{row[i]} * x[i];
    }
    return result;
  }

  [[nodiscard]] vector norm(const vector& x, const std::vector<float>& weight) const {
    double squares = 0.0;
    for (const double value : x) squares += value * value;
    const double mean = squares / static_cast<double>(x.size());
    vector result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      result[i] = x[i] / std::sqrt(mean + double{model_.sizes().norm_epsilon}) * double{weight[i]};
    }
    return result;
  }

  // q, k or v of one token: [heads * head_dim].
  static vector project(const llama_example::matrix& weights, const std::vector<float>& bias,
                        const vector& x) {
    vector result = product(weights, x);
    for (std::size_t i = 0; i < bias.size(); ++i) result[i] += double{bias[i]};
    return result;
  }

  void rotate(vector& heads, std::size_t position) const {
    const auto& rotation = model_.rotation();
    const std::size_t pairs = rotation.dimensions / 2;
    for (std::size_t head = 0; head < heads.size(); head += model_.shape().head_dim) {
      for (std::size_t i = 0; i < pairs; ++i) {
        const double factor = rotation.factors.empty() ? 1.0 : double{rotation.factors[i]};
        const double angle = static_cast<double>(position) / rotation.stretch / factor /
                             std::pow(rotation.base, 2.0 * static_cast<double>(i) /
                                                         static_cast<double>(rotation.dimensions));
        const bool neighbours = rotation.layout == llama_example::rope_layout::neighbours;
        double& a = heads[head + (neighbours ? 2 * i : i)];
        double& b = heads[head + (neighbours ? 2 * i + 1 : i + pairs)];
        const double x = a, y = b;
        a = x * std::cos(angle) - y * std::sin(angle);
        b = x * std::sin(angle) + y * std::cos(angle);
      }
    }
  }

  // [head_dim] of one query head at one position, and its row of the map.
  vector attend(std::uint32_t layer, std::uint32_t head, std::size_t query, const table& q,
                const table& k, const table& v, vector& weights) const {
    const std::size_t d = model_.shape().head_dim;
    const std::uint32_t kv_head = head / model_.shape().group_size();
    double total = 0.0;
    for (std::size_t key = 0; key <= query; ++key) {
      if (sees_ && !sees_(layer, kv_head, query, key)) continue;
      double dot = 0.0;
      for (std::size_t i = 0; i < d; ++i) dot += q[query][head * d + i] * k[key][kv_head * d + i];
      weights[key] = std::exp(dot / std::sqrt(static_cast<double>(d)));
      total += weights[key];
    }
    vector result(d);
    for (std::size_t key = 0; key <= query; ++key) {
      weights[key] /= total;
      for (std::size_t i = 0; i < d; ++i) result[i] += weights[key] * v[key][kv_head * d + i];
    }
    return result;
  }

  void run_layer(std::uint32_t layer, table& x) {
    const auto& weights = model_.layers()[layer];
    const std::size_t n = x.size();
    table q(n), k(n), v(n);
    for (std::size_t t = 0; t < n; ++t) {
      const vector normed = norm(x[t], weights.attention_norm);
      q[t] = project(weights.query, weights.query_bias, normed);
      k[t] = project(weights.key, weights.key_bias, normed);
      v[t] = project(weights.value, weights.value_bias, normed);
      rotate(q[t], t);
      rotate(k[t], t);
    }
    if (recording_) attention_.emplace_back(model_.shape().query_heads);
    for (std::size_t t = 0; t < n; ++t) {
      vector heads;
      for (std::uint32_t head = 0; head < model_.shape().query_heads; ++head) {
        vector map_row(n);
        const vector out = attend(layer, head, t, q, k, v, map_row);
        if (recording_) attention_.back()[head].push_back(std::move(map_row));
        heads.insert(heads.end(), out.begin(), out.end());
      }
      add(product(weights.attention_output, heads), x[t]);
      add(feed_forward(weights, norm(x[t], weights.feed_forward_norm)), x[t]);
    }
  }

  static vector feed_forward(const llama_example::layer_weights& weights, const vector& x) {
    vector gate = product(weights.gate, x);
    const vector up = product(weights.up, x);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0 + std::exp(-gate[i]));
    return product(weights.down, gate);
  }

  static void add(const vector& y, vector& x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const llama_example::model& model_;
  visibility sees_;
  bool recording_ = false;
  std::vector<std::vector<table>> attention_;
};

}  // namespace headwise_tests
