// SPDX-License-Identifier: Apache-2.0
//
// Small models of many architectures with random weights: those that the takeover serves give the
// logits of stock llama.cpp, the others are refused for the right reason.
#include <iostream>

#include "llama_cpp/program/stock_engine.hpp"
#include "llama_cpp/takeover.hpp"
#include "logits.hpp"
#include "models.hpp"
#include "random_models.hpp"

namespace headwise_tests {
namespace {

using hlc::takeover_form;

struct architecture {
  const char* name;
  hlc::metadata_map metadata = {};  // beside the usual
};

hlc::takeover_options options_of(takeover_form form) {
  return by_one_thread<hlc::takeover_options>(300, 50, form);
}

void expect_stock_logits(llama_model& model, const char* name) {
  for (const auto form : {takeover_form::op_swap, takeover_form::overwrite}) {
    hlc::stock_engine stock(model, {.cells = 300});  // as the takeover: phi3 rotates by them
    hlc::takeover ours(model, all_global(model), options_of(form));
    const token_ids prompt = some_ids(120, 7), rest = some_ids(20, 11);
    float apart = most_apart(stock.feed(0, prompt), ours.feed(0, prompt));
    for (const llama_token& id : rest)
      apart = std::max(apart, most_apart(stock.feed(0, {&id, 1}), ours.feed(0, {&id, 1})));
    EXPECT_LE(apart, 1e-3F) << name;
  }
}

TEST(llama_cpp_architectures, that_are_served) {
  const architecture served[] = {
      {"llama",
       {{"attention.key_length", 24U},
        {"attention.value_length", 24U},
        {"rope.dimension_count", 24U}}},
      {"qwen2"},
      {"qwen3",
       {{"attention.key_length", 32U},
        {"attention.value_length", 32U},
        {"rope.dimension_count", 32U}}},
      {"phi3"},
      {"starcoder2"},
      {"stablelm", {{"attention.head_count_kv", 4U}}},
      {"gptneox", {{"attention.head_count_kv", 4U}, {"use_parallel_residual", true}}},
      {"falcon", {{"attention.head_count_kv", 1U}}},
      {"gemma",
       {{"attention.key_length", 32U},
        {"attention.value_length", 32U},
        {"rope.dimension_count", 32U}}},
      {"olmo2"},
      {"granite",
       {{"attention.scale", 0.07F},
        {"logit_scale", 2.0F},
        {"residual_scale", 0.5F},
        {"embedding_scale", 3.0F}}},
  };
  for (const architecture& a : served) {
    const auto model = make_small_model(a.name, a.metadata);
    try {
      expect_stock_logits(*model, a.name);
    } catch (const headwise::error& e) {
      ADD_FAILURE() << a.name << ": " << e.what();
    }
  }
}

TEST(llama_cpp_architectures, that_are_refused) {
  const struct {
    architecture model;
    const char* reason;
  } refused[] = {
      {{"gemma2", {{"attention.sliding_window", 64U}}}, "sliding windows of 64 tokens"},
      {{"mamba",
        {{"ssm.conv_kernel", 4U},
         {"ssm.inner_size", 128U},
         {"ssm.state_size", 16U},
         {"ssm.time_step_rank", 4U}}},
       "recurrent layers"},
      {{"bloom", {{"attention.head_count_kv", 4U}}}, "ALiBi"},
      {{"dream"}, "diffusion"},
      {{"lfm2",
        {{"shortconv.l_cache", 3U}, {"attention.head_count_kv", std::vector<std::uint32_t>{2, 0}}}},
       "recurrent layers"},
      {{"t5", {{"attention.relative_buckets_count", 32U}}}, "an encoder"},
      {{"gpt-oss",
        {{"attention.sliding_window", 0U},
         {"expert_count", 2U},
         {"expert_used_count", 1U},
         {"expert_feed_forward_length", 32U}}},
       "learned sinks"},
      {{"grok", {{"expert_count", 2U}, {"expert_used_count", 1U}}}, "tanh"},
  };
  for (const auto& r : refused) {
    const auto model = make_small_model(r.model.name, r.model.metadata);
    try {
      hlc::takeover engine(*model, all_global(*model), options_of(takeover_form::automatic));
      ADD_FAILURE() << r.model.name << " was taken";
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::unsupported);
      EXPECT_NE(std::string(e.what()).find(r.reason), std::string::npos) << e.what();
      std::cout << e.what() << '\n';
    }
  }
}

}  // namespace
}  // namespace headwise_tests
