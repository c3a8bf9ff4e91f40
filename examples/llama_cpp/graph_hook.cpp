// SPDX-License-Identifier: Apache-2.0

#include "graph_hook.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace headwise_llama_cpp {
namespace {

constexpr std::size_t node_kinds = 3;

using op_params = std::array<std::int32_t, GGML_MAX_OP_PARAMS / sizeof(std::int32_t)>;

// How a custom operation says in its parameters what to call: ggml's own secret, so it is read off
// one that ggml made.
op_params custom_params(ggml_custom_op_t function, void* user_data) {
  struct context_deleter {
    void operator()(ggml_context* context) const noexcept { ggml_free(context); }
  };
  const std::unique_ptr<ggml_context, context_deleter> context(
      ggml_init({4 * ggml_tensor_overhead(), nullptr, true}));
  ggml_tensor* argument = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 1);
  const ggml_tensor* const made =
      ggml_custom_4d(context.get(), GGML_TYPE_F32, 1, 1, 1, 1, &argument, 1, function,
                     GGML_N_TASKS_MAX, user_data);
  op_params params;
  std::copy(std::begin(made->op_params), std::end(made->op_params), params.begin());
  return params;
}

}  // namespace

graph_hook::graph_hook(std::uint32_t layers) : facts_(layers), bindings_(layers * node_kinds) {
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    for (const node_kind kind : {node_kind::keys, node_kind::values, node_kind::attention}) {
      binding& b = bound({kind, layer});
      b.hook = this;
      b.node = {kind, layer};
      b.op_params = custom_params(&graph_hook::on_custom, &b);
    }
}

void graph_hook::install(llama_context_params& params) noexcept {
  other_abort_ = install_callbacks(params, &graph_hook::on_node, &graph_hook::on_abort, this);
}

void graph_hook::begin(std::size_t tokens) noexcept {
  tokens_ = tokens;
  nodes_run_.store(0, std::memory_order_relaxed);
  failure_.store(nullptr, std::memory_order_relaxed);
}

const char* graph_hook::missing_work() const noexcept {
  if (form_ != graph_form::stock && nodes_run_.load() != bindings_.size())
    return "a graph that did not run every layer's rows and attention";
  return nullptr;
}

bool graph_hook::on_node(ggml_tensor* node, bool ask, void* self) noexcept {
  graph_hook& hook = *static_cast<graph_hook*>(self);
  if (ask) return hook.ask(*node);
  if (const auto found = find_node(*node))
    hook.run(*node, *found, found->kind == node_kind::attention ? read_facts(*node).scale : 0.0F,
             {});
  return true;  // false would end the graph in silence
}

bool graph_hook::on_abort(void* self) noexcept {
  const graph_hook& hook = *static_cast<const graph_hook*>(self);
  return hook.failure() != nullptr || hook.other_abort_.wanted();
}

void graph_hook::on_custom(ggml_tensor* node, int index, int count, void* data) noexcept {
  const binding& b = *static_cast<const binding*>(data);
  b.hook->run(*node, b.node, b.scale,
              {static_cast<std::size_t>(index), static_cast<std::size_t>(count)});
}

bool graph_hook::ask(ggml_tensor& node) noexcept {
  if (rotates_by_cells(node)) has_two_rotations_ = true;
  const auto found = find_node(node);
  if (!found) return false;
  if (found->layer >= facts_.size()) {
    fail("a layer beyond those of the model");
    return false;
  }
  if (found->kind == node_kind::attention) facts_[found->layer] = read_facts(node);
  if (const char* const obstacle = find_obstacle(node, found->kind)) {
    fail(obstacle);  // a node that was swapped would not be looked at again
    return false;
  }
  if (form_ == graph_form::op_swap) swap(node, *found);
  return form_ == graph_form::overwrite;
}

void graph_hook::swap(ggml_tensor& node, const attention_layer_node& found) noexcept {
  binding& b = bound(found);
  if (found.kind == node_kind::attention) b.scale = facts_[found.layer].scale;
  node.op = GGML_OP_CUSTOM;
  std::copy(b.op_params.begin(), b.op_params.end(), std::begin(node.op_params));
}

void graph_hook::run(const ggml_tensor& node, const attention_layer_node& found, float scale,
                     worker self) noexcept {
  if (failure() != nullptr) return;
  const bool attends = found.kind == node_kind::attention;
  const headwise::rows<const float> in = attends ? query_rows(node) : written_rows(node);
  const headwise::model_shape& shape = rows_->shape();
  const std::size_t heads = attends ? shape.query_heads : shape.kv_heads;
  if (in.count != tokens_ || in.width != heads * shape.head_dim) {
    fail("a graph of other tokens or heads than were opened");
    return;
  }
  if (self.index == 0) nodes_run_.fetch_add(1, std::memory_order_relaxed);
  switch (found.kind) {
    case node_kind::keys:
      return rows_->add_keys(self, in);
    case node_kind::values:
      return rows_->add_values(self, found.layer, in);
    case node_kind::attention:
      return rows_->attend(self, found.layer, in, scale, output_rows(node));
  }
}

void graph_hook::fail(const char* why) noexcept {
  failure_.store(why, std::memory_order_release);
}

}  // namespace headwise_llama_cpp
