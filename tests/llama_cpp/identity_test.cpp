// SPDX-License-Identifier: Apache-2.0
//
// The takeover with every head global writes the very tokens that stock llama.cpp writes, where
// nothing but the order of sums is different: weights and rows of 32 bits. Quantised weights make
// llama.cpp round activations too, and then a last bit of difference grows to the size of that
// rounding: stock's own two ways of attention differ by as much, and are the measure there.
#include <iostream>

#include "llama_cpp/program/stock_engine.hpp"
#include "llama_cpp/takeover.hpp"
#include "logits.hpp"
#include "models.hpp"

namespace headwise_tests {
namespace {

using hlc::row_type;
using hlc::takeover_form;

constexpr std::size_t prompt_tokens = 40;

struct amount {
  std::size_t prompts = 10, new_tokens = 256;
};

hlc::takeover_options options_of(row_type rows, takeover_form form, amount of) {
  auto options = by_one_thread<hlc::takeover_options>(
      static_cast<headwise::token_count>(prompt_tokens + of.new_tokens), 64, form);
  options.rows = rows;
  options.sequences = of.prompts;
  return options;
}

hlc::stock_options full_cache(amount of) {
  hlc::stock_options options;
  options.cells = of.prompts * (prompt_tokens + of.new_tokens);
  options.sequences = of.prompts;
  options.micro_batch = 64;
  return options;
}

struct outcome {
  std::size_t tokens = 0, different = 0;
  float apart = 0.0F;  // of any two logits

  // Returns the token that the first would write.
  llama_token compare(std::span<const float> expected, std::span<const float> got) {
    ++tokens;
    different += greedy(expected) == greedy(got) ? 0U : 1U;
    apart = std::max(apart, most_apart(expected, got));
    return greedy(expected);
  }
};

// Both continue all prompts at once, with the first engine's tokens. Ours by step().
template <class Engine>
outcome write_texts(const llama_model& model, amount of, hlc::stock_engine& stock, Engine& other) {
  const std::vector<token_ids> texts = some_prompts(model, of.prompts, prompt_tokens);
  outcome seen;
  token_ids next;
  for (std::size_t s = 0; s < texts.size(); ++s)
    next.push_back(seen.compare(stock.feed(s, texts[s]), other.feed(s, texts[s])));
  for (std::size_t i = 1; i < of.new_tokens; ++i) {
    const auto expected = stock.step(next);
    const auto got = other.step(next);
    for (std::size_t s = 0; s < next.size(); ++s) next[s] = seen.compare(expected[s], got[s]);
  }
  std::cout << seen.tokens << " tokens, " << seen.different << " different, logits at most "
            << seen.apart << " apart\n";
  return seen;
}

// The takeover with stock_engine's step.
struct all_sequences {
  hlc::takeover engine;

  std::span<const float> feed(std::size_t s, std::span<const llama_token> ids) {
    return engine.feed(s, ids);
  }
  headwise::rows<const float> step(std::span<const llama_token> ids) {
    std::vector<hlc::next_token> next;
    for (std::size_t s = 0; s < ids.size(); ++s) next.push_back({s, ids[s]});
    return engine.step(next);
  }
};

outcome compare_with_stock(llama_model& model, row_type rows, takeover_form form, amount of = {}) {
  hlc::stock_options options = full_cache(of);
  if (rows == row_type::f16) options.rows = GGML_TYPE_F16;
  hlc::stock_engine stock(model, options);
  all_sequences ours{hlc::takeover(model, all_global(model), options_of(rows, form, of))};
  EXPECT_EQ(ours.engine.form(), form == takeover_form::overwrite ? hlc::graph_form::overwrite
                                                                 : hlc::graph_form::op_swap)
      << ours.engine.form_note();
  return write_texts(model, of, stock, ours);
}

outcome compare_stock_with_itself(llama_model& model, amount of) {
  hlc::stock_engine stock(model, full_cache(of));
  hlc::stock_options options = full_cache(of);
  options.flash_attention = true;
  hlc::stock_engine flash(model, options);
  return write_texts(model, of, stock, flash);
}

void expect_identical(const outcome& seen) {
  EXPECT_EQ(seen.tokens, amount{}.prompts * amount{}.new_tokens);
  EXPECT_EQ(seen.different, 0U);
  EXPECT_LE(seen.apart, 1e-3F);
}

TEST(llama_cpp_identity, stories260k) {
  HEADWISE_NEEDS_MODEL(stories_model);
  const auto model = load_quietly(stories_model);
  expect_identical(compare_with_stock(*model, row_type::f32, takeover_form::automatic));
  expect_identical(compare_with_stock(*model, row_type::f32, takeover_form::overwrite));
}

TEST(llama_cpp_identity, tiny_model_with_weights_of_32_bits) {
  const widened_model wide(tiny_model);
  const auto model = load_quietly(wide.path());
  expect_identical(compare_with_stock(*model, row_type::f32, takeover_form::automatic));
  expect_identical(compare_with_stock(*model, row_type::f32, takeover_form::overwrite));
}

TEST(llama_cpp_identity, smollm2_with_weights_of_32_bits) {
  HEADWISE_NEEDS_MODEL(smollm2_model);
  const widened_model wide(smollm2_model);
  const auto model = load_quietly(wide.path());
  expect_identical(compare_with_stock(*model, row_type::f32, takeover_form::automatic));
}

// Near ties of about a hundredth go either way; there are few.
TEST(llama_cpp_identity, rows_of_16_bits) {
  const widened_model wide(tiny_model);
  for (const auto& path : {wide.path(), stories_model}) {
    if (!std::filesystem::exists(path)) continue;
    const auto model = load_quietly(path);
    const outcome seen = compare_with_stock(*model, row_type::f16, takeover_form::automatic);
    EXPECT_LE(seen.apart, 0.1F);
    EXPECT_LE(seen.different, seen.tokens / 200);
  }
}

TEST(llama_cpp_identity, quantised_weights_differ_no_more_than_stock_does) {
  HEADWISE_NEEDS_MODEL(smollm2_model);
  const auto model = load_quietly(smollm2_model);
  const amount of{.prompts = 4, .new_tokens = 48};
  const outcome ours = compare_with_stock(*model, row_type::f32, takeover_form::automatic, of);
  const outcome stock = compare_stock_with_itself(*model, of);
  EXPECT_LE(ours.apart, 1.5F * stock.apart);
  EXPECT_LE(ours.different, 2 * stock.different + 2);
}

}  // namespace
}  // namespace headwise_tests
