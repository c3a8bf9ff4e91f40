// SPDX-License-Identifier: Apache-2.0
//
// dense_layers: the layers of a dense cache, filled with the rows of a problem; the baseline.
#pragma once

#include "support/dense_cache.hpp"
#include "support/layer_problem.hpp"

namespace headwise_bench {

template <headwise::row_codec Codec>
class dense_layers {
 public:
  explicit dense_layers(const problem& p)
      : problem_(p),
        shape_(p.shape(problem::cold_layers(layer_bytes()))),
        expected_(reference_checksum<Codec>(p, all_global(p.shape(1)))),
        cache_(shape_) {
    const inputs& in = inputs_of(p);
    cache_.reserve(p.length);
    for (std::size_t head = 0; head < shape_.heads(); ++head)
      cache_.append(head, in.keys.view(head % kv_heads, 0, p.length),
                    in.values.view(head % kv_heads, 0, p.length));
  }

  // By one worker.
  void attend(unsigned, std::size_t layer, std::uint32_t head, headwise::rows<const float> queries,
              headwise::rows<float> out) {
    cache_.attend(layer * kv_heads + head, queries, problem_.scale(), out);
  }
  [[nodiscard]] std::size_t layers() const { return shape_.layers; }
  [[nodiscard]] std::size_t layer_bytes() const {
    return kv_heads * problem_.length * problem_.row_bytes<Codec>();
  }
  [[nodiscard]] std::size_t held_bytes() const { return layer_bytes(); }
  [[nodiscard]] double kept_ratio() const { return 1.0; }
  [[nodiscard]] double expected() const { return expected_; }

 private:
  problem problem_;
  headwise::model_shape shape_;
  double expected_;
  dense_cache<Codec> cache_;
};

}  // namespace headwise_bench
