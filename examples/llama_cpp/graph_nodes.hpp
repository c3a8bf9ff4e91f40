// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of llama.cpp's graph are a layer's rows on their way into the cache, and its
// attention. Names are not enough ("Kcur-0" is three nodes, flash attention has none that lasts):
// a node is known by its operation and by the cache tensor that it reads or writes.
//
//   rows       SET_ROWS        src[0] [kv_heads * head_dim, tokens] F32, after rotation
//              of cache_k_l<layer>, cache_v_l<layer>; src[1] [tokens] I64, the cells
//   attention  FLASH_ATTN_EXT  src[0] [head_dim, tokens, query_heads] F32
//              out [head_dim, query_heads, tokens] F32
//
// Checked on llama.cpp 0.5.0. O(1) each; pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ggml.h>

#include "headwise/core/rows.hpp"
#include "headwise/core/types.hpp"

namespace headwise_llama_cpp {

enum class node_kind { keys, values, attention };

struct attention_layer_node {
  node_kind kind;
  std::uint32_t layer;
};

// What the node is to a layer's attention; nullopt: nothing.
[[nodiscard]] std::optional<attention_layer_node> find_node(const ggml_tensor& node);

// Whether the node rotates by factors that llama.cpp chose by the number of its cells.
[[nodiscard]] bool rotates_by_cells(const ggml_tensor& node) noexcept;

// What an attention node says of its layer.
struct attention_facts {
  std::uint32_t query_heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  float scale = 0.0F;
  friend bool operator==(const attention_facts&, const attention_facts&) = default;
};
[[nodiscard]] attention_facts read_facts(const ggml_tensor& attention);
// The same of the logits of attention without flash attention, [cells, tokens, query_heads]; their
// scale comes later. Throws headwise::error(unsupported) where the node is no product.
[[nodiscard]] attention_facts read_facts_of_logits(const ggml_tensor& logits);

// Throws headwise::error(unsupported) where a layer's heads are not those of the shape.
void require_heads(std::uint32_t layer, const attention_facts& facts,
                   const headwise::model_shape& shape);

// Why the node is not what the takeover computes or can reach; nullptr: it is. The texts are
// literals, so that a callback may keep one.
[[nodiscard]] const char* find_obstacle(const ggml_tensor& node, node_kind kind);

// The rows of a node that find_obstacle() lets pass: [tokens, heads * head_dim].
[[nodiscard]] headwise::rows<const float> written_rows(const ggml_tensor& set_rows) noexcept;
[[nodiscard]] headwise::rows<const float> query_rows(const ggml_tensor& attention) noexcept;
[[nodiscard]] headwise::rows<float> output_rows(const ggml_tensor& attention) noexcept;

// "kq-7" with the prefix "kq-" is 7; nullopt for another name.
[[nodiscard]] std::optional<std::uint32_t> numbered(const char* name, const char* prefix) noexcept;

}  // namespace headwise_llama_cpp
