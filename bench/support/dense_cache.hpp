// SPDX-License-Identifier: Apache-2.0
//
// dense_cache: the baseline, which is what a simple engine does. Every head has one growing buffer
// of keys and one of values, [length, head_dim], and nothing ever leaves. Attention is two matrix
// products by Eigen around a softmax; rows that are not float are decoded a block at a time.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "headwise/codec/concepts.hpp"
#include "headwise/core/rows.hpp"
#include "headwise/core/types.hpp"

namespace headwise_bench {

template <headwise::row_codec Codec>
class dense_cache {
 public:
  explicit dense_cache(const headwise::model_shape& shape)
      : row_bytes_(Codec::row_bytes(shape.head_dim)),
        heads_(shape.heads()),
        block_(block_rows, shape.head_dim) {}

  void reserve(std::size_t row_count) {
    for (head& h : heads_) {
      h.keys.reserve(row_count * row_bytes_);
      h.values.reserve(row_count * row_bytes_);
    }
  }
  void append(std::size_t head_index, headwise::rows<const float> keys,
              headwise::rows<const float> values) {
    push_back(heads_[head_index].keys, keys);
    push_back(heads_[head_index].values, values);
  }
  [[nodiscard]] std::span<const std::byte> keys(std::size_t head_index) const {
    return heads_[head_index].keys;
  }
  [[nodiscard]] std::span<const std::byte> values(std::size_t head_index) const {
    return heads_[head_index].values;
  }

  // queries, out: [group_size, head_dim].
  void attend(std::size_t head_index, headwise::rows<const float> queries, float scale,
              headwise::rows<float> out) {
    const head& h = heads_[head_index];
    const auto count = to_index(h.keys.size() / row_bytes_);
    const auto group = to_index(queries.count), width = to_index(queries.width);
    const Eigen::Map<const matrix> q(queries.data, group, width);
    Eigen::Map<matrix> result(out.data, group, width);
    weights_.resize(group, count);
    for_each_block(h.keys, width, [&](const auto& block, Eigen::Index first) {
      weights_.middleCols(first, block.rows()).noalias() = scale * q * block.transpose();
    });
    for (Eigen::Index g = 0; g < group; ++g) {
      auto row = weights_.row(g).array();
      row = (row - row.maxCoeff()).exp();
      row /= row.sum();
    }
    result.setZero();
    for_each_block(h.values, width, [&](const auto& block, Eigen::Index first) {
      result.noalias() += weights_.middleCols(first, block.rows()) * block;
    });
  }

 private:
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  static constexpr Eigen::Index block_rows = 64;
  struct head {
    std::vector<std::byte> keys, values;
  };

  [[nodiscard]] static Eigen::Index to_index(std::size_t n) { return static_cast<Eigen::Index>(n); }

  void push_back(std::vector<std::byte>& buffer, headwise::rows<const float> added) {
    const std::size_t end = buffer.size();
    buffer.resize(end + added.count * row_bytes_);
    for (std::size_t i = 0; i < added.count; ++i)
      Codec::encode(added[i], buffer.data() + end + i * row_bytes_);
  }

  // fn(matrix [n, width], index of its first row). Float rows are one block, read where they lie.
  template <class Fn>
  void for_each_block(std::span<const std::byte> buffer, Eigen::Index width, Fn fn) {
    const auto count = to_index(buffer.size() / row_bytes_);
    if (Codec::name == std::string_view("f32")) {
      fn(Eigen::Map<const matrix>(reinterpret_cast<const float*>(buffer.data()), count, width), 0);
      return;
    }
    for (Eigen::Index first = 0; first < count; first += block_rows) {
      const Eigen::Index n = std::min(block_rows, count - first);
      for (Eigen::Index r = 0; r < n; ++r)
        Codec::decode(buffer.data() + static_cast<std::size_t>(first + r) * row_bytes_,
                      {block_.row(r).data(), static_cast<std::size_t>(width)});
      fn(block_.topRows(n), first);
    }
  }

  std::size_t row_bytes_;
  std::vector<head> heads_;
  matrix block_;    // [block_rows, head_dim], decoded
  matrix weights_;  // [group_size, length]
};

}  // namespace headwise_bench
