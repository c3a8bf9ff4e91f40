// SPDX-License-Identifier: Apache-2.0
//
// attention_reference: what the nodes of a graph gave, beside the same attention computed in double
// from the very rows and queries that they were given. Every token sees all before it.
// Two uses: over a store, to see whether its attention is right; over nothing, to see whether what
// llama.cpp's own attention gives is what the adapter takes it for: then the output stays as it is,
// and rows and queries are rounded to 16 bits first, as llama.cpp rounds them.
// O(tokens^2 * query_heads * head_dim) a layer, by one thread. Memory: keys and values of `tokens`
// tokens. No allocation and no throw after construction.
#pragma once

#include <span>
#include <vector>

#include "layer_work.hpp"
#include "row_store.hpp"

namespace headwise_llama_cpp {

class attention_reference final : public layer_rows {
 public:
  // scales: of each layer's attention, [layers]; empty: as each call says. store: what is asked for
  // the attention; nullptr: llama.cpp's stays. tokens: the most that are fed.
  attention_reference(const headwise::model_shape& shape, std::span<const float> scales,
                      layer_rows* store, std::size_t tokens);

  void add_keys(worker self, headwise::rows<const float> keys) noexcept override;
  void add_values(worker self, std::uint32_t layer,
                  headwise::rows<const float> values) noexcept override;
  void attend(worker self, std::uint32_t layer, headwise::rows<const float> queries, float scale,
              headwise::rows<float> out) noexcept override;
  [[nodiscard]] const headwise::model_shape& shape() const noexcept override { return shape_; }

  // How far a layer's outputs were off at most, in any run: the root mean square of the difference,
  // as a share of that of the output. [layers]; NaN where an output was none.
  [[nodiscard]] std::span<const double> differences() const noexcept { return differences_; }

 private:
  struct layer_kept {
    std::vector<float> keys, values;  // [tokens, kv_heads * head_dim]
    std::size_t count = 0;            // tokens
  };

  void keep(const headwise::rows<const float>& from, float* to) const noexcept;
  [[nodiscard]] float as_read(float x) const noexcept;
  // What query head `head` of the token behind `seen - 1` others gets, into expected_.
  void compute(const layer_kept& layer, std::size_t seen, std::size_t head, const float* query,
               double scale) noexcept;
  void judge(std::uint32_t layer, const headwise::rows<const float>& queries, double scale,
             const headwise::rows<const float>& out) noexcept;

  headwise::model_shape shape_;
  std::size_t width_;  // kv_heads * head_dim
  std::vector<float> scales_;
  layer_rows* store_;
  std::vector<layer_kept> layers_;
  std::vector<float> new_keys_;   // [tokens, width]
  std::vector<double> weights_;   // [tokens]
  std::vector<float> query_;      // [head_dim]
  std::vector<double> expected_;  // [head_dim]
  std::vector<double> differences_;
  arrivals ended_;
};

}  // namespace headwise_llama_cpp
