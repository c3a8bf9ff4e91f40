// SPDX-License-Identifier: Apache-2.0
//
// One text in a model: feeds tokens, gives logits, keeps keys and values as a blueprint says.
// session.cpp is the integration that an engine author reads; its cache is headwise and nothing
// else. Key and Value are what rows are stored as; the end of this file lists the pairs that there
// are.
//
// Threads: a session belongs to one thread; sessions of one model may run side by side.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "layers.hpp"
#include "model.hpp"

#include "headwise/attend/attend.hpp"
#include "headwise/blueprint/blueprint.hpp"
#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"
#include "headwise/core/token_classifier.hpp"
#include "headwise/manager/cache_manager.hpp"

namespace llama_example {

struct session_options {
  headwise::token_count capacity = 2048;  // the most tokens that the text may have
  std::size_t chunk = 64;                 // the most tokens that go through a layer together
  headwise::cache_config cache = {};
};

// The attention of one layer and one chunk; the keys are positions 0 to keys - 1, and a weight is 0
// where the query does not see the key.
struct attention_record {
  std::uint32_t layer = 0;
  headwise::position first_query = 0;
  std::size_t query_heads = 0;
  std::size_t queries = 0;
  std::size_t keys = 0;
  std::span<const float> weights;  // [query_heads, queries, keys]
};

template <headwise::row_codec Key, headwise::row_codec Value = Key>
class session {
 public:
  // first: the position of the first row; logits: [tokens, vocabulary], valid during the call.
  using logits_visitor = std::function<void(headwise::position first, rows<const float> logits)>;
  using attention_visitor = std::function<void(const attention_record&)>;

  // Throws headwise::error where the blueprint was made for another model. The model must outlive
  // the session.
  session(const model& weights, const headwise::blueprint& plan, session_options options = {});

  // Feeds tokens behind those already there; `visit` gets the logits of all of them, chunk by
  // chunk. Throws headwise::error for an id outside of the vocabulary or a text over capacity, and
  // then nothing was fed; where the cache runs out of pages, whole chunks were.
  void feed(std::span<const std::int32_t> ids, const logits_visitor& visit);
  // The same for the last token's logits alone, [vocabulary], valid until the next call. With one
  // token at a time nothing is allocated from the second one on.
  std::span<const float> feed(std::span<const std::int32_t> ids);

  // Called once for each layer of each chunk from now on; an empty function ends it. A prompt that
  // fits one chunk comes as one whole map per layer.
  void record_attention(attention_visitor visit) { recorder_ = std::move(visit); }

  [[nodiscard]] bool try_rollback(headwise::token_count n) noexcept {
    return text_.try_rollback(n);
  }
  [[nodiscard]] headwise::token_count length() const noexcept { return text_.length(); }
  [[nodiscard]] headwise::cache_stats stats() const noexcept { return text_.stats(); }
  [[nodiscard]] const model& weights() const noexcept { return model_; }

 private:
  using cache = headwise::cache_manager<headwise::builtin_policies, Key, Value>;
  using step = typename cache::step_type;

  // Activations of a chunk: [chunk, width] each.
  class activations {
   public:
    activations(std::size_t chunk, std::size_t width) : width_(width), values_(chunk * width) {}
    [[nodiscard]] rows<float> first(std::size_t tokens) noexcept {
      return {values_.data(), tokens, width_};
    }

   private:
    std::size_t width_;
    std::vector<float> values_;
  };

  void check(std::span<const std::int32_t> ids) const;
  // Runs one chunk and keeps it; the result is the last layer's output, [tokens, embedding].
  rows<float> run_chunk(std::span<const std::int32_t> ids);
  void attention_block(step& open, std::uint32_t layer, rows<float> x);
  void attention(step& open, std::uint32_t layer, std::size_t tokens);
  void feed_forward_block(const layer_weights& layer, rows<float> x);
  void output_logits(rows<const float> x, rows<float> logits);
  void record_row(const typename cache::view_type& view, std::uint32_t kv_head, std::size_t query,
                  std::size_t queries);

  const model& model_;
  session_options options_;
  headwise::token_classifier classifier_;
  cache cache_;
  typename cache::sequence_type text_;
  headwise::attend_scratch scratch_;
  rope rope_;
  std::vector<headwise::token> tokens_;
  activations x_, normed_, query_, key_, value_, attended_, gate_, up_;
  std::vector<float> logits_;
  attention_visitor recorder_;
  std::vector<float> map_;  // [query_heads, queries, keys]
};

extern template class session<headwise::f32>;
extern template class session<headwise::f16>;
extern template class session<headwise::bf16>;
extern template class session<headwise::int8_row>;
extern template class session<headwise::int4_group>;
extern template class session<headwise::int8_row, headwise::int4_group>;

}  // namespace llama_example
