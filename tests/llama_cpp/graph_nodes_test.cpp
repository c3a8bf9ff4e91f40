// SPDX-License-Identifier: Apache-2.0
//
// Attention nodes that the takeover cannot compute, made one by one: each is told for what it is.
#include "llama_cpp/graph_nodes.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace headwise_tests {
namespace {

namespace hlc = headwise_llama_cpp;

struct ggml_deleter {
  void operator()(ggml_context* context) const noexcept { ggml_free(context); }
};

// Of five tokens, four query heads and two KV heads over 256 cells, but for what a test changes.
struct attention_node {
  std::int64_t value_width = 16, streams = 1;
  float alibi = 0.0F, cap = 0.0F;
  bool sinks = false;
  ggml_type query_type = GGML_TYPE_F32;

  [[nodiscard]] std::string obstacle() const {
    const std::unique_ptr<ggml_context, ggml_deleter> made(
        ggml_init({64 * ggml_tensor_overhead(), nullptr, true}));
    ggml_context* const c = made.get();
    // Queries as llama.cpp has them: [head_dim, heads, tokens], seen as [head_dim, tokens, heads].
    ggml_tensor* const q =
        ggml_permute(c, ggml_new_tensor_4d(c, query_type, 16, 4, 5, streams), 0, 2, 1, 3);
    ggml_tensor* const k = ggml_new_tensor_4d(c, GGML_TYPE_F16, 16, 256, 2, streams);
    ggml_tensor* const v = ggml_new_tensor_4d(c, GGML_TYPE_F16, value_width, 256, 2, streams);
    ggml_tensor* const mask = ggml_new_tensor_4d(c, GGML_TYPE_F16, 256, 64, 1, streams);
    ggml_set_name(k, "cache_k_l1");
    ggml_tensor* const node = ggml_flash_attn_ext(c, q, k, v, mask, 0.25F, alibi, cap);
    if (sinks) ggml_flash_attn_ext_add_sinks(node, ggml_new_tensor_1d(c, GGML_TYPE_F32, 4));
    const auto found = hlc::find_node(*node);
    EXPECT_TRUE(found && found->kind == hlc::node_kind::attention && found->layer == 1);
    const hlc::attention_facts facts{4, 2, 16, 0.25F};
    EXPECT_EQ(hlc::read_facts(*node), facts);
    const char* const why = hlc::find_obstacle(*node, hlc::node_kind::attention);
    return why == nullptr ? "" : why;
  }
};

TEST(llama_cpp_graph_nodes, attention_that_is_taken) {
  EXPECT_EQ(attention_node().obstacle(), "");
}

TEST(llama_cpp_graph_nodes, attention_that_is_not) {
  EXPECT_EQ(attention_node{.sinks = true}.obstacle(), "attention with learned sinks");
  EXPECT_EQ(attention_node{.alibi = 8.0F}.obstacle(), "attention with ALiBi biases");
  EXPECT_EQ(attention_node{.cap = 50.0F}.obstacle(), "attention with soft-capped logits");
  EXPECT_EQ(attention_node{.streams = 2}.obstacle(),
            "a cache of several streams (kv_unified = false)");
  EXPECT_EQ(attention_node{.value_width = 32}.obstacle(), "values of another width than the keys");
  EXPECT_EQ(attention_node{.query_type = GGML_TYPE_F16}.obstacle(),
            "queries that do not lie as [tokens, query heads, head_dim] of floats");
}

// Rows on their way into a layer's cache.
std::string obstacle_of_rows(ggml_type type, std::int64_t width, std::int64_t tokens) {
  const std::unique_ptr<ggml_context, ggml_deleter> made(
      ggml_init({16 * ggml_tensor_overhead(), nullptr, true}));
  ggml_context* const c = made.get();
  ggml_tensor* const cache = ggml_new_tensor_2d(c, GGML_TYPE_F16, width, 256);
  ggml_set_name(cache, "cache_v_l0");
  ggml_tensor* const node = ggml_set_rows(c, cache, ggml_new_tensor_2d(c, type, width, tokens),
                                          ggml_new_tensor_1d(c, GGML_TYPE_I64, tokens));
  const auto found = hlc::find_node(*node);
  EXPECT_TRUE(found && found->kind == hlc::node_kind::values && found->layer == 0);
  const char* const why = hlc::find_obstacle(*node, hlc::node_kind::values);
  return why == nullptr ? "" : why;
}

TEST(llama_cpp_graph_nodes, rows_are_floats_side_by_side) {
  EXPECT_EQ(obstacle_of_rows(GGML_TYPE_F32, 32, 5), "");
  EXPECT_NE(obstacle_of_rows(GGML_TYPE_F32, 1, 160).find("transposed"), std::string::npos);
}

TEST(llama_cpp_graph_nodes, names_with_numbers) {
  EXPECT_EQ(hlc::numbered("kq-12", "kq-"), 12U);
  for (const char* other : {"kq-", "kq-1x", "kq_tanh-1", "kq-1 (view)", "k"})
    EXPECT_EQ(hlc::numbered(other, "kq-"), std::nullopt) << other;
}

}  // namespace
}  // namespace headwise_tests
