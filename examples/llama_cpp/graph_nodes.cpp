// SPDX-License-Identifier: Apache-2.0

#include "graph_nodes.hpp"

#include <charconv>
#include <cstring>

#include <ggml-backend.h>

#include "headwise/core/error.hpp"

namespace headwise_llama_cpp {
namespace {

using headwise::rows;

const ggml_tensor& root_of(const ggml_tensor& tensor) {
  const ggml_tensor* root = &tensor;
  while (root->view_src != nullptr) root = root->view_src;
  return *root;
}

template <class T>
std::size_t stride_of(const ggml_tensor& tensor, int dimension) {
  return tensor.nb[dimension] / sizeof(T);
}

std::size_t size_of(const ggml_tensor& tensor, int dimension) {
  return static_cast<std::size_t>(tensor.ne[dimension]);
}

float float_param(const ggml_tensor& tensor, std::size_t index) {
  float value;
  std::memcpy(&value, tensor.op_params + index, sizeof value);
  return value;
}

bool is_on_host(const ggml_tensor& tensor) {
  return tensor.buffer == nullptr || ggml_backend_buffer_is_host(tensor.buffer);
}

const char* find_obstacle_in_attention(const ggml_tensor& node) {
  const ggml_tensor& query = *node.src[0];
  if (query.type != GGML_TYPE_F32 || query.nb[0] != sizeof(float) ||
      query.nb[2] != query.nb[0] * size_of(query, 0))
    return "queries that do not lie as [tokens, query heads, head_dim] of floats";
  if (node.ne[0] != query.ne[0] || node.src[1]->ne[0] != query.ne[0])
    return "values of another width than the keys";
  if (node.ne[3] != 1) return "a cache of several streams (kv_unified = false)";
  if (node.src[4] != nullptr) return "attention with learned sinks";
  if (float_param(node, 1) != 0.0F) return "attention with ALiBi biases";
  if (float_param(node, 2) != 0.0F) return "attention with soft-capped logits";
  if (!is_on_host(node) || !is_on_host(query)) return "attention on another device than the CPU";
  return nullptr;
}

const char* find_obstacle_in_rows(const ggml_tensor& node) {
  const ggml_tensor& source = *node.src[0];
  if (source.type != GGML_TYPE_F32 || source.nb[0] != sizeof(float))
    return "rows for the cache that are not floats";
  if (source.ne[0] == 1 || source.ne[2] != 1 || source.ne[3] != 1)
    return "rows for the cache that are not [tokens, KV heads * head_dim] (transposed values?)";
  if (!is_on_host(source)) return "rows for the cache on another device than the CPU";
  return nullptr;
}

std::string describe(const attention_facts& facts) {
  return std::to_string(facts.query_heads) + " query heads, " + std::to_string(facts.kv_heads) +
         " KV heads, head_dim " + std::to_string(facts.head_dim);
}

}  // namespace

std::optional<std::uint32_t> numbered(const char* name, const char* prefix) noexcept {
  const std::size_t length = std::strlen(prefix);
  if (std::strncmp(name, prefix, length) != 0) return std::nullopt;
  const char* const end = name + std::strlen(name);
  std::uint32_t number = 0;
  const auto [stop, problem] = std::from_chars(name + length, end, number);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<attention_layer_node> find_node(const ggml_tensor& node) {
  if (node.op == GGML_OP_SET_ROWS) {
    const char* const name = root_of(node).name;
    if (const auto layer = numbered(name, "cache_k_l")) return {{node_kind::keys, *layer}};
    if (const auto layer = numbered(name, "cache_v_l")) return {{node_kind::values, *layer}};
  } else if (node.op == GGML_OP_FLASH_ATTN_EXT) {
    if (const auto layer = numbered(root_of(*node.src[1]).name, "cache_k_l"))
      return {{node_kind::attention, *layer}};
  }
  return std::nullopt;
}

bool rotates_by_cells(const ggml_tensor& node) noexcept {
  return node.op == GGML_OP_ROPE && node.src[2] != nullptr &&
         std::strstr(node.src[2]->name, "rope_factors_") != nullptr;  // _short or _long
}

attention_facts read_facts(const ggml_tensor& attention) {
  return {static_cast<std::uint32_t>(attention.src[0]->ne[2]),
          static_cast<std::uint32_t>(attention.src[1]->ne[2]),
          static_cast<std::uint32_t>(attention.src[0]->ne[0]), float_param(attention, 0)};
}

attention_facts read_facts_of_logits(const ggml_tensor& logits) {
  if (logits.op != GGML_OP_MUL_MAT)
    headwise::raise(headwise::error_code::unsupported, logits.name, ggml_op_name(logits.op),
                    "the product of queries and keys");
  const ggml_tensor& keys = *logits.src[0];  // [head_dim, cells, kv_heads]
  return {static_cast<std::uint32_t>(logits.ne[2]), static_cast<std::uint32_t>(keys.ne[2]),
          static_cast<std::uint32_t>(keys.ne[0]), 0.0F};
}

void require_heads(std::uint32_t layer, const attention_facts& facts,
                   const headwise::model_shape& shape) {
  const attention_facts expected{shape.query_heads, shape.kv_heads, shape.head_dim, facts.scale};
  if (facts != expected)
    headwise::raise(headwise::error_code::unsupported, "layer " + std::to_string(layer),
                    describe(facts), describe(expected) + ", in every layer");
}

const char* find_obstacle(const ggml_tensor& node, node_kind kind) {
  return kind == node_kind::attention ? find_obstacle_in_attention(node)
                                      : find_obstacle_in_rows(node);
}

rows<const float> written_rows(const ggml_tensor& set_rows) noexcept {
  const ggml_tensor& source = *set_rows.src[0];
  return {static_cast<const float*>(source.data), size_of(source, 1), size_of(source, 0),
          stride_of<float>(source, 1)};
}

rows<const float> query_rows(const ggml_tensor& attention) noexcept {
  const ggml_tensor& query = *attention.src[0];
  return {static_cast<const float*>(query.data), size_of(query, 1),
          size_of(query, 2) * size_of(query, 0), stride_of<float>(query, 1)};
}

rows<float> output_rows(const ggml_tensor& attention) noexcept {
  return {static_cast<float*>(attention.data), size_of(attention, 2),
          size_of(attention, 1) * size_of(attention, 0), stride_of<float>(attention, 2)};
}

}  // namespace headwise_llama_cpp
