// SPDX-License-Identifier: Apache-2.0
//
// graph_hook: llama.cpp's evaluation callback. It looks at the nodes of each graph and, as its form
// says, leaves them alone, lets them run and overwrites what the attention gave, or makes them
// operations of its own.
//
//   stock      nothing is changed; what the layers are is written down (facts)
//   overwrite  the graph stops behind each node: rows are read off, the output is overwritten. The
//              attention runs in the thread that decodes, and llama.cpp's own for nothing beside it
//   op_swap    before the graph runs, the nodes become GGML_OP_CUSTOM, so that the rows are kept
//              and attended to in llama.cpp's own threads, and nothing runs twice. Graphs are used
//              again, and so are their changed nodes: once swapped, a context stays so
//
// A callback cannot return an error: returning false would end the graph in silence and half done.
// So a failure is kept, the abort callback ends the graph, and failure() tells the decode call.
// One context's callbacks; the owner thread between decodes.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include <llama.h>

#include "callbacks.hpp"
#include "graph_nodes.hpp"
#include "row_store.hpp"

namespace headwise_llama_cpp {

enum class graph_form { stock, overwrite, op_swap };

class graph_hook {
 public:
  // layers: of the model.
  explicit graph_hook(std::uint32_t layers);
  graph_hook(const graph_hook&) = delete;
  graph_hook& operator=(const graph_hook&) = delete;

  // Puts the callbacks in; an abort callback that was there is asked too. The hook must outlive the
  // context.
  void install(llama_context_params& params) noexcept;

  void use(graph_form form, layer_rows* rows) noexcept {
    form_ = form;
    rows_ = rows;
  }
  // Before a graph runs: the tokens that it is about.
  void begin(std::size_t tokens) noexcept;
  // After llama_decode: why the hook ended the graph, and what a graph that ran to its end left
  // out; nullptr: it did not, nothing.
  [[nodiscard]] const char* failure() const noexcept {
    return failure_.load(std::memory_order_acquire);
  }
  [[nodiscard]] const char* missing_work() const noexcept;

  // What the layers said of themselves in the graphs so far, [layers]; query_heads 0: nothing.
  [[nodiscard]] const std::vector<attention_facts>& facts() const noexcept { return facts_; }
  [[nodiscard]] bool has_two_rotations() const noexcept { return has_two_rotations_; }

 private:
  // What a node that was made a custom operation is given.
  struct binding {
    graph_hook* hook;
    attention_layer_node node;
    float scale;
    std::array<std::int32_t, GGML_MAX_OP_PARAMS / sizeof(std::int32_t)> op_params;
  };

  static bool on_node(ggml_tensor* node, bool ask, void* self) noexcept;
  static bool on_abort(void* self) noexcept;
  static void on_custom(ggml_tensor* node, int index, int count, void* data) noexcept;

  [[nodiscard]] bool ask(ggml_tensor& node) noexcept;
  void swap(ggml_tensor& node, const attention_layer_node& found) noexcept;
  void run(const ggml_tensor& node, const attention_layer_node& found, float scale,
           worker self) noexcept;
  void fail(const char* why) noexcept;
  [[nodiscard]] binding& bound(const attention_layer_node& found) noexcept {
    return bindings_[found.layer * 3 + static_cast<std::size_t>(found.kind)];
  }

  graph_form form_ = graph_form::stock;
  layer_rows* rows_ = nullptr;
  std::vector<attention_facts> facts_;  // [layers]
  bool has_two_rotations_ = false;
  std::vector<binding> bindings_;  // [layers, kinds]
  std::size_t tokens_ = 0;
  std::atomic<std::size_t> nodes_run_{0};
  std::atomic<const char*> failure_{nullptr};
  other_abort other_abort_;
};

}  // namespace headwise_llama_cpp
