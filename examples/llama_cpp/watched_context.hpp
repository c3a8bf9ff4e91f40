// SPDX-License-Identifier: Apache-2.0
//
// watched_context: llama.cpp with its own full cache and without flash attention, so that the
// attention of each layer is a tensor: one sequence, and a function that is shown one node of each
// layer after it ran, and may change what it gave.
//
//   logits         kq-<layer>           before scale and mask  [cells, tokens, query_heads] F32
//   probabilities  kq_soft_max-<layer>                         [cells, tokens, query_heads] F32
//
// All or nothing: a run that throws leaves the cells as they were. One owner thread.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "callbacks.hpp"
#include "handles.hpp"
#include "token_batch.hpp"

#include "headwise/core/rows.hpp"
#include "headwise/core/types.hpp"

namespace headwise_llama_cpp {

enum class attention_stage { logits, probabilities };

class watched_context {
 public:
  // What one query head of a layer gave: [tokens, cells].
  struct layer_view {
    std::uint32_t layer;
    const ggml_tensor* node;
    [[nodiscard]] headwise::rows<float> head(std::size_t query_head) const noexcept;
  };
  using visitor = std::function<void(const layer_view&)>;
  static constexpr headwise::position empty_cell = static_cast<headwise::position>(-1);

  // params: threads, types of rows and the like. Throws headwise::error where llama.cpp refuses.
  watched_context(llama_model& model, llama_context_params params, headwise::token_count capacity,
                  std::size_t micro_batch, attention_stage stage, visitor visit);
  watched_context(const watched_context&) = delete;
  watched_context& operator=(const watched_context&) = delete;

  // Appends at most micro_batch tokens. Logits [ids.size(), vocabulary], or [1, vocabulary] of the
  // last token, valid until the next run. Throws what the visitor throws, and headwise::error where
  // llama.cpp could not run, the graph had no such node in some layer, a layer's heads are not
  // those of the model, or logits are capped behind the stage that is shown.
  headwise::rows<const float> run(std::span<const llama_token> ids, bool all_logits);
  // Forgets the tokens from position `length` on.
  void shorten(headwise::token_count length) noexcept;
  void clear() noexcept { shorten(0); }

  [[nodiscard]] headwise::token_count length() const noexcept { return length_; }
  [[nodiscard]] headwise::token_count capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t micro_batch() const noexcept { return micro_batch_; }
  // During a visit: the position of the token in each cell, empty_cell where there is none.
  [[nodiscard]] std::span<const headwise::position> cell_positions() const noexcept {
    return positions_;
  }

 private:
  static bool on_node(ggml_tensor* node, bool ask, void* self) noexcept;
  static bool on_abort(void* self) noexcept;
  // The layer of a node of the stage.
  [[nodiscard]] std::optional<std::uint32_t> layer_of(const ggml_tensor& node) const noexcept;
  [[nodiscard]] bool asks_for(const ggml_tensor& node);
  void check_logits(const ggml_tensor& node) const;
  void compute();
  void show(const ggml_tensor& node);
  void learn_cells(const ggml_tensor& row_write);

  attention_stage stage_;
  visitor visit_;
  headwise::model_shape shape_;
  headwise::token_count capacity_;
  std::size_t micro_batch_;
  std::size_t vocabulary_;
  context_handle context_;
  token_batch batch_;
  headwise::token_count length_ = 0;
  std::size_t seen_layers_ = 0;                // in this run
  std::vector<headwise::position> positions_;  // [cells]
  std::exception_ptr problem_;
  other_abort other_abort_;
};

}  // namespace headwise_llama_cpp
