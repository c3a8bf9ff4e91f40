// SPDX-License-Identifier: Apache-2.0
//
// Two ways of one blueprint: rows that are given up (takeover), and logits that are hidden while
// all rows stay (emulation, in llama.cpp's own attention). They must write the same text.
#include "llama_cpp/emulation.hpp"

#include <iostream>

#include "llama_cpp/program/stock_engine.hpp"
#include "llama_cpp/takeover.hpp"
#include "logits.hpp"
#include "models.hpp"
#include "profiled.hpp"

#include "headwise/policy/heavy_hitters.hpp"

namespace headwise_tests {
namespace {

constexpr std::size_t text_tokens = 1024;

hlc::emulation_options full_cache(std::size_t micro_batch = 128) {
  auto options = by_one_thread<hlc::emulation_options>(text_tokens, micro_batch);
  options.context.type_k = options.context.type_v = GGML_TYPE_F32;
  return options;
}

void expect_same_text(llama_model& model, const headwise::blueprint& plan) {
  const token_ids text = some_prompts(model, 1, text_tokens)[0];
  hlc::emulation emulated(model, plan, full_cache());
  hlc::takeover taken_over(
      model, plan,
      by_one_thread<hlc::takeover_options>(text_tokens, 128, hlc::takeover_form::automatic));
  std::vector<float> expected;
  emulated.feed(text, [&](headwise::position first, headwise::rows<const float> logits) {
    EXPECT_EQ(first * logits.width, expected.size());
    expected.insert(expected.end(), logits.data, logits.data + logits.count * logits.width);
  });
  float apart = 0.0F;
  std::size_t tokens = 0;
  taken_over.feed(0, text, [&](headwise::position first, headwise::rows<const float> logits) {
    for (std::size_t i = 0; i < logits.count; ++i, ++tokens) {
      const std::span<const float> other(expected.data() + (first + i) * logits.width,
                                         logits.width);
      ASSERT_EQ(greedy(logits[i]), greedy(other)) << "at position " << first + i;
      apart = std::max(apart, most_apart(logits[i], other));
    }
  });
  EXPECT_EQ(tokens, text_tokens);
  EXPECT_LE(apart, 1e-3F);
  std::cout << tokens << " tokens, " << distinct_policies(plan) << " policies, kept "
            << taken_over.stats(0).kept_ratio() << " of the rows, logits at most " << apart
            << " apart\n";
}

void expect_same_text_by_profile(const std::filesystem::path& path, double target) {
  const widened_model wide(path);
  const auto model = load_quietly(wide.path());
  const temporary_folder folder;
  const headwise::blueprint plan = profiled(*model, folder.path() / "maps.safetensors", target);
  EXPECT_GE(distinct_policies(plan), 3U);
  expect_same_text(*model, plan);
}

TEST(llama_cpp_emulation, writes_what_the_takeover_writes) {
  expect_same_text_by_profile(tiny_model, 0.9);
}

TEST(llama_cpp_emulation, writes_what_the_takeover_writes_on_smollm2) {
  HEADWISE_NEEDS_MODEL(smollm2_model);
  expect_same_text_by_profile(smollm2_model, 0.9);
}

TEST(llama_cpp_emulation, all_global_is_stock) {
  const auto model = load_quietly(tiny_model);
  const token_ids text = some_prompts(*model, 1, 300)[0];
  hlc::stock_options options;
  options.micro_batch = 128;
  hlc::stock_engine stock(*model, options);
  hlc::emulation emulated(*model, all_global(*model), full_cache());
  EXPECT_EQ(most_apart(emulated.feed(text), stock.feed(0, text)), 0.0F);
}

TEST(llama_cpp_emulation, a_window_hides_what_is_older) {
  const widened_model wide(tiny_model);
  const auto model = load_quietly(wide.path());
  const auto plan = headwise::uniform_blueprint(hlc::shape_of(*model),
                                                headwise::make_spec(headwise::local_window(1)));
  // Every query sees itself alone, so that only the token counts, not what was before.
  hlc::emulation emulated(*model, plan, full_cache(16));
  const token_ids texts[] = {{5, 6, 7}, {9, 8, 7}};
  std::vector<float> first;
  for (const token_ids& text : texts) {
    emulated.clear();
    const auto logits = emulated.feed(text);
    if (first.empty())
      first.assign(logits.begin(), logits.end());
    else
      EXPECT_LE(most_apart(first, logits), 1e-4F);
  }
}

TEST(llama_cpp_emulation, a_call_that_fails_midway_changes_nothing) {
  const auto model = load_quietly(tiny_model);
  const token_ids text = some_prompts(*model, 1, 200)[0];
  const std::span<const llama_token> begin(text.data(), 50), rest(text.data() + 50, 150);
  hlc::emulation disturbed(*model, all_global(*model), full_cache(32));
  hlc::emulation undisturbed(*model, all_global(*model), full_cache(32));
  for (hlc::emulation* const each : {&disturbed, &undisturbed}) each->feed(begin);
  token_ids wrong(rest.begin(), rest.end());
  wrong[100] = -1;  // in the fourth micro-batch
  EXPECT_THROW(disturbed.feed(wrong), headwise::error);
  EXPECT_EQ(disturbed.length(), 50U);
  const auto refuse = [](headwise::position first, headwise::rows<const float>) {
    if (first > 100) throw std::runtime_error("no more");
  };
  EXPECT_THROW(disturbed.feed(rest, refuse), std::runtime_error);
  EXPECT_EQ(disturbed.length(), 50U);
  EXPECT_EQ(most_apart(disturbed.feed(rest), undisturbed.feed(rest)), 0.0F);
}

TEST(llama_cpp_emulation, refuses_what_it_cannot_know) {
  const auto model = load_quietly(tiny_model);
  const auto plan = headwise::uniform_blueprint(hlc::shape_of(*model),
                                                headwise::make_spec(headwise::heavy_hitters(8)));
  EXPECT_THROW(hlc::emulation(*model, plan, full_cache()), headwise::error);
  hlc::emulation emulated(*model, all_global(*model), full_cache());
  EXPECT_THROW(emulated.feed(token_ids(text_tokens + 1, 3)), headwise::error);
  EXPECT_THROW(emulated.feed(token_ids{-1}), headwise::error);
}

}  // namespace
}  // namespace headwise_tests
