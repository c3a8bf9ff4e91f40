// SPDX-License-Identifier: Apache-2.0

#include "watched_context.hpp"

#include <algorithm>
#include <utility>

#include "graph_nodes.hpp"
#include "model_support.hpp"

namespace headwise_llama_cpp {

using headwise::error_code;
using headwise::position;

namespace {

const char* prefix_of(attention_stage stage) noexcept {
  return stage == attention_stage::logits ? "kq-" : "kq_soft_max-";
}

}  // namespace

headwise::rows<float> watched_context::layer_view::head(std::size_t query_head) const noexcept {
  auto* const first = static_cast<char*>(node->data) + query_head * node->nb[2];
  return {reinterpret_cast<float*>(first), static_cast<std::size_t>(node->ne[1]),
          static_cast<std::size_t>(node->ne[0]), node->nb[1] / sizeof(float)};
}

watched_context::watched_context(llama_model& model, llama_context_params params,
                                 headwise::token_count capacity, std::size_t micro_batch,
                                 attention_stage stage, visitor visit)
    : stage_(stage),
      visit_(std::move(visit)),
      shape_(shape_of(model)),
      capacity_(capacity),
      micro_batch_(micro_batch),
      vocabulary_(vocabulary_size(model)),
      batch_(micro_batch) {
  params.n_ctx = capacity;
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(micro_batch);
  params.n_seq_max = 1;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.offload_kqv = false;
  other_abort_ =
      install_callbacks(params, &watched_context::on_node, &watched_context::on_abort, this);
  context_ = make_context(&model, params);
  positions_.assign(llama_n_ctx(context_.get()), empty_cell);
}

headwise::rows<const float> watched_context::run(std::span<const llama_token> ids,
                                                 bool all_logits) {
  if (ids.size() > capacity_ - length_)
    headwise::raise(error_code::out_of_range, "text",
                    std::to_string(ids.size()) + " tokens more than " + std::to_string(length_),
                    "at most " + std::to_string(capacity_) + " in all");
  batch_.clear();
  for (std::size_t i = 0; i < ids.size(); ++i)
    batch_.add(ids[i], static_cast<llama_pos>(length_ + i), 0, all_logits || i + 1 == ids.size());
  compute();
  length_ += static_cast<headwise::token_count>(ids.size());
  return {llama_get_logits(context_.get()), all_logits ? ids.size() : 1, vocabulary_};
}

void watched_context::compute() {
  // Takes the cells back unless the run is whole.
  struct cell_guard {
    watched_context* context;
    ~cell_guard() {
      if (context != nullptr) context->shorten(context->length());
    }
  } guard{this};
  seen_layers_ = 0;
  problem_ = nullptr;
  const char* const failure = decode(context_.get(), batch_);
  if (problem_ != nullptr) std::rethrow_exception(problem_);
  const std::string place = "text at position " + std::to_string(length_);
  if (failure != nullptr)
    headwise::raise(error_code::unsupported, place, failure, "a whole run of the model");
  if (seen_layers_ != shape_.layers)
    headwise::raise(error_code::unsupported, place,
                    std::to_string(seen_layers_) + " nodes " + prefix_of(stage_) + "<layer>",
                    "one in each of " + std::to_string(shape_.layers) + " layers");
  guard.context = nullptr;
}

void watched_context::shorten(headwise::token_count length) noexcept {
  // Of any sequence: where llama.cpp broke off, a cell may have a position and no sequence yet.
  llama_memory_seq_rm(llama_get_memory(context_.get()), -1, static_cast<llama_pos>(length), -1);
  for (position& p : positions_)
    if (p != empty_cell && p >= length) p = empty_cell;
  length_ = length;
}

// Nothing may be thrown through llama.cpp, and false would end the graph in silence: a problem is
// kept, and the abort callback ends the graph.
bool watched_context::on_node(ggml_tensor* node, bool ask, void* self) noexcept {
  watched_context& context = *static_cast<watched_context*>(self);
  try {
    if (ask) return context.asks_for(*node);
    context.show(*node);
  } catch (...) {
    context.problem_ = std::current_exception();
  }
  return true;
}

bool watched_context::on_abort(void* self) noexcept {
  const watched_context& context = *static_cast<const watched_context*>(self);
  return context.problem_ != nullptr || context.other_abort_.wanted();
}

std::optional<std::uint32_t> watched_context::layer_of(const ggml_tensor& node) const noexcept {
  return numbered(node.name, prefix_of(stage_));
}

bool watched_context::asks_for(const ggml_tensor& node) {
  if (const auto found = find_node(node);
      found && found->kind == node_kind::keys && found->layer == 0)
    learn_cells(node);
  check_logits(node);
  return layer_of(node).has_value();
}

void watched_context::check_logits(const ggml_tensor& node) const {
  if (const auto layer = numbered(node.name, prefix_of(attention_stage::logits)))
    require_heads(*layer, read_facts_of_logits(node), shape_);
  if (stage_ == attention_stage::logits && numbered(node.name, "kq_tanh-"))
    headwise::raise(error_code::unsupported, node.name,
                    "logits that are capped after they are shown",
                    "logits that go into the softmax as they are");
}

// The cells are an input of the graph, so they are known before it runs.
void watched_context::learn_cells(const ggml_tensor& row_write) {
  const ggml_tensor& cells = *row_write.src[1];
  const auto* const indices = static_cast<const std::int64_t*>(cells.data);
  for (std::size_t i = 0; i < batch_.size(); ++i)
    positions_.at(static_cast<std::size_t>(indices[i])) =
        static_cast<position>(batch_.get().pos[i]);
}

void watched_context::show(const ggml_tensor& node) {
  if (problem_ != nullptr) return;
  if (node.type != GGML_TYPE_F32 || static_cast<std::size_t>(node.ne[1]) != batch_.size() ||
      static_cast<std::size_t>(node.ne[0]) > positions_.size() ||
      static_cast<std::uint32_t>(node.ne[2]) != shape_.query_heads || node.ne[3] != 1)
    headwise::raise(error_code::unsupported, node.name,
                    std::string(ggml_type_name(node.type)) + " of " + std::to_string(node.ne[0]) +
                        " x " + std::to_string(node.ne[1]) + " x " + std::to_string(node.ne[2]),
                    "floats, [query heads, tokens, cells]");
  ++seen_layers_;
  visit_({*layer_of(node), &node});
}

}  // namespace headwise_llama_cpp
