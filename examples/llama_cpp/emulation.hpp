// SPDX-License-Identifier: Apache-2.0
//
// emulation: what a blueprint would do to a model's text, exactly: llama.cpp's own cache keeps
// every row, and a logit whose row the head would have given up becomes -inf before the softmax.
// For evaluation: no memory is saved, nothing is faster. Refused are models whose logits go through
// a tanh on their way to the softmax, since that makes -inf a number, and heavy hitters: which
// tokens they keep depends on the attention so far. One sequence. O(query heads * tokens) a token
// and layer, beside the model. One owner thread; a call that throws changes nothing. The model must
// outlive it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "watched_context.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_llama_cpp {

struct emulation_options {
  headwise::token_count capacity = 4096;  // tokens of the longest text
  std::size_t micro_batch = 256;
  // Threads, types of llama.cpp's rows, rotation and the like.
  llama_context_params context = llama_context_default_params();
};

class emulation {
 public:
  // Throws headwise::error where the blueprint is for another model or ranks tokens, a size is none
  // that llama.cpp takes, or the model is none that the adapter takes.
  emulation(llama_model& model, const headwise::blueprint& plan, const emulation_options& options);

  // Appends tokens; the last one's logits, [vocabulary], valid until the next call. Throws
  // headwise::error on ids or lengths that cannot be, and on layers that are not those of the
  // model.
  std::span<const float> feed(std::span<const llama_token> ids);
  // The same with the logits of all tokens, [tokens, vocabulary], a micro-batch at a time. What the
  // visitor throws takes the call back; it must not call the emulation.
  using logits_visitor =
      std::function<void(headwise::position first, headwise::rows<const float> logits)>;
  void feed(std::span<const llama_token> ids, const logits_visitor& visit);

  void clear() noexcept { context_.clear(); }
  [[nodiscard]] headwise::token_count length() const noexcept { return context_.length(); }

 private:
  using policy = headwise::builtin_policies::variant;

  void run_all(std::span<const llama_token> ids, bool all_logits, const logits_visitor& visit);
  headwise::rows<const float> run(std::span<const llama_token> ids, bool all_logits);
  void set_lifetimes(std::span<const llama_token> ids);
  void hide(const watched_context::layer_view& logits) const;

  headwise::model_shape shape_;
  headwise::token_classifier classifier_;
  std::vector<policy> plan_;                      // [layers * kv_heads]
  std::vector<headwise::token_count> lifetimes_;  // [layers * kv_heads, capacity]
  watched_context context_;
};

}  // namespace headwise_llama_cpp
