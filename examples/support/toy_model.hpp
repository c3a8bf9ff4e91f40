// SPDX-License-Identifier: Apache-2.0
//
// toy_model: stands in for a transformer, so that the example programs need no weights. It has keys
// and values [heads, length, head_dim], queries [layers, length, query_heads, head_dim], and plain
// attention in double precision to check against. Every element is a multiple of 1/64 below 2,
// which f16 holds exactly: what differs between cache and reference is the rounding of sums.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "headwise/core/rows.hpp"
#include "headwise/core/types.hpp"

class toy_model {
 public:
  toy_model(headwise::model_shape shape, headwise::token_count length)
      : shape_(shape),
        length_(length),
        keys_(random_elements(1, shape.heads() * length * shape.head_dim)),
        values_(random_elements(2, shape.heads() * length * shape.head_dim)),
        queries_(random_elements(
            3, std::size_t{shape.layers} * length * shape.query_heads * shape.head_dim)) {}

  using const_rows = headwise::rows<const float>;

  // [count, head_dim], the tokens from `first` on.
  const_rows keys(headwise::head_id head, headwise::position first, std::size_t count = 1) const {
    return {keys_.data() + row(head, first) * shape_.head_dim, count, shape_.head_dim};
  }
  const_rows values(headwise::head_id head, headwise::position first, std::size_t count = 1) const {
    return {values_.data() + row(head, first) * shape_.head_dim, count, shape_.head_dim};
  }
  // [group_size, head_dim], the query heads that read `head`.
  const_rows queries(headwise::head_id head, headwise::position query) const {
    const std::size_t first = (std::size_t{head.layer} * length_ + query) * shape_.query_heads +
                              std::size_t{head.kv_head} * shape_.group_size();
    return {queries_.data() + first * shape_.head_dim, shape_.group_size(), shape_.head_dim};
  }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape_.head_dim)); }

  // What `query` reads out of the keys for which visible(position) is true: [group_size, head_dim].
  template <class Visible>
  std::vector<float> attention(headwise::head_id head, headwise::position query,
                               Visible visible) const {
    const const_rows all_keys = keys(head, 0, length_), all_values = values(head, 0, length_);
    std::vector<float> out;
    for (std::size_t g = 0; g < shape_.group_size(); ++g) {
      std::vector<double> sums(shape_.head_dim, 0.0);
      double total = 0.0;
      for (headwise::position pos = 0; pos <= query; ++pos) {
        if (!visible(pos)) continue;
        // Logits of this model stay far below 700, where exp would overflow.
        const double weight = std::exp(dot(queries(head, query)[g], all_keys[pos]) * scale());
        total += weight;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * all_values[pos][i];
      }
      for (const double sum : sums) out.push_back(static_cast<float>(sum / total));
    }
    return out;
  }

 private:
  std::size_t row(headwise::head_id head, headwise::position pos) const {
    return (std::size_t{head.layer} * shape_.kv_heads + head.kv_head) * length_ + pos;
  }
  static double dot(std::span<const float> a, std::span<const float> b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
    return sum;
  }
  // splitmix64: the same numbers with every standard library.
  static std::vector<float> random_elements(std::uint64_t seed, std::size_t count) {
    std::vector<float> elements(count);
    std::uint64_t state = seed << 32;
    for (float& element : elements) {
      std::uint64_t mixed = state += 0x9e3779b97f4a7c15U;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
      element = (static_cast<float>((mixed ^ (mixed >> 31)) % 255) - 127.0F) / 64.0F;
    }
    return elements;
  }

  headwise::model_shape shape_;
  std::size_t length_;
  std::vector<float> keys_, values_, queries_;
};
