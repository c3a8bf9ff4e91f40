// SPDX-License-Identifier: Apache-2.0
//
// What the takeover promises beside the right tokens: texts longer than llama.cpp's cells, prompts
// in micro-batches, several sequences, calls that fail and leave nothing behind.
#include "llama_cpp/takeover.hpp"

#include "llama_cpp/program/stock_engine.hpp"
#include "logits.hpp"
#include "models.hpp"

#include "headwise/policy/heavy_hitters.hpp"
#include "support/counting_resource.hpp"
#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise::error;
using headwise::error_code;
using hlc::takeover;
using hlc::takeover_form;

hlc::takeover_options small_options(takeover_form form = takeover_form::op_swap) {
  return by_one_thread<hlc::takeover_options>(600, 64, form);
}

// Windows, sinks and windows, heavy hitters and all: a policy for each head in turn.
headwise::blueprint mixed(const llama_model& model) {
  using namespace headwise;
  const policy_spec specs[] = {
      make_spec(local_window(24)), make_spec(global{}),
      make_spec(union_of(special_tokens(token_classes::sink), local_window(16))),
      make_spec(union_of(heavy_hitters(12), local_window(20)))};
  blueprint plan = all_global(model);
  plan.tokens.sink_count = 4;
  for (std::size_t i = 0; i < plan.heads.size(); ++i) {
    plan.heads[i].policy = specs[i % std::size(specs)];
    plan.heads[i].name = std::to_string(i % std::size(specs));
  }
  return plan;
}

class takeover_test : public testing::Test {
 protected:
  // The logits of the last token of `ids` when they are fed in pieces.
  std::vector<float> logits_of(takeover& engine, std::span<const llama_token> ids,
                               std::size_t piece, std::size_t sequence = 0) {
    std::vector<float> logits;
    while (!ids.empty()) {
      const auto some = ids.first(std::min(piece, ids.size()));
      const auto got = engine.feed(sequence, some);
      logits.assign(got.begin(), got.end());
      ids = ids.subspan(some.size());
    }
    return logits;
  }
  token_ids prompt(std::size_t length, std::size_t number = 0) {
    return some_prompts(*model_, number + 1, length)[number];
  }

  hlc::model_handle model_ = load_quietly(tiny_model);
};

TEST_F(takeover_test, goes_far_beyond_the_cells_of_llama_cpp) {
  const widened_model wide(tiny_model);
  const auto model = load_quietly(wide.path());
  const token_ids text = prompt(500);
  for (const auto form : {takeover_form::op_swap, takeover_form::overwrite}) {
    hlc::stock_engine stock(*model);
    takeover ours(*model, all_global(*model), small_options(form));
    EXPECT_EQ(llama_n_ctx(ours.context()), 256U);
    for (const llama_token id : text) {
      const auto expected = stock.feed(0, {&id, 1});
      const auto got = ours.feed(0, {&id, 1});
      ASSERT_EQ(greedy(got), greedy(expected));
      ASSERT_LE(most_apart(got, expected), 1e-3F);
    }
    EXPECT_EQ(ours.length(0), 500U);
  }
}

TEST_F(takeover_test, pieces_of_a_prompt_do_not_matter) {
  const widened_model wide(tiny_model);
  const auto model = load_quietly(wide.path());
  const token_ids text = prompt(200);
  for (const auto form : {takeover_form::op_swap, takeover_form::overwrite}) {
    auto options = small_options(form);
    options.micro_batch = 256;
    takeover whole(*model, mixed(*model), options);
    const auto expected = logits_of(whole, text, 200);
    options.micro_batch = 48;  // four micro-batches and a bit
    takeover cut(*model, mixed(*model), options);
    EXPECT_LE(most_apart(logits_of(cut, text, 200), expected), 1e-3F);
    cut.clear(0);
    EXPECT_LE(most_apart(logits_of(cut, text, 7), expected), 1e-3F);
    EXPECT_EQ(cut.stats(0).resident_rows, whole.stats(0).resident_rows);
    EXPECT_LT(cut.stats(0).kept_ratio(), 0.6);
  }
}

// Smaller than what the self-check would feed at once.
TEST_F(takeover_test, a_micro_batch_may_be_small) {
  const token_ids text = prompt(60);
  takeover wide(*model_, mixed(*model_), small_options());
  const auto expected = logits_of(wide, text, 60);
  for (const std::size_t micro_batch : {1U, 3U}) {
    auto options = small_options();
    options.micro_batch = micro_batch;
    takeover narrow(*model_, mixed(*model_), options);
    EXPECT_LE(most_apart(logits_of(narrow, text, 60), expected), 0.05F) << micro_batch;
  }
}

TEST_F(takeover_test, both_forms_give_the_same_bits) {
  const token_ids text = prompt(150);
  takeover swapped(*model_, mixed(*model_), small_options());
  takeover overwritten(*model_, mixed(*model_), small_options(takeover_form::overwrite));
  EXPECT_EQ(logits_of(swapped, text, 100), logits_of(overwritten, text, 100));
}

TEST_F(takeover_test, threads_give_the_same_bits) {
  const token_ids text = prompt(120);
  auto options = small_options();
  takeover one(*model_, mixed(*model_), options);
  const auto expected = logits_of(one, text, 100);
  options.context.n_threads = options.context.n_threads_batch = 3;
  takeover three(*model_, mixed(*model_), options);
  EXPECT_EQ(logits_of(three, text, 100), expected);
  llama_set_n_threads(three.context(), 2, 4);  // others than it was made for
  three.clear(0);
  EXPECT_EQ(logits_of(three, text, 100), expected);
}

TEST_F(takeover_test, logits_of_all_tokens_are_those_of_each) {
  const token_ids text = prompt(100);
  takeover one(*model_, mixed(*model_), small_options());
  takeover all(*model_, mixed(*model_), small_options());
  std::size_t next = 0;
  all.feed(0, text, [&](headwise::position first, headwise::rows<const float> logits) {
    ASSERT_EQ(first, next);
    for (std::size_t i = 0; i < logits.count; ++i, ++next)
      EXPECT_LE(most_apart(logits[i], one.feed(0, {&text[next], 1})), 0.05F);
  });
  EXPECT_EQ(next, text.size());
}

TEST_F(takeover_test, sequences_keep_apart) {
  auto options = small_options();
  options.sequences = 3;
  takeover together(*model_, mixed(*model_), options);
  takeover alone(*model_, mixed(*model_), small_options());
  const token_ids texts[] = {prompt(90, 0), prompt(40, 1), prompt(70, 2)};
  for (std::size_t s = 0; s < 3; ++s) logits_of(together, texts[s], 64, s);
  const hlc::next_token next[] = {{2, 5}, {0, 6}};
  const auto got = together.step(next);
  for (std::size_t i = 0; i < 2; ++i) {
    alone.clear(0);
    logits_of(alone, texts[next[i].sequence], 64);
    EXPECT_LE(most_apart(got[i], alone.feed(0, {&next[i].id, 1})), 0.05F) << i;
  }
  EXPECT_EQ(together.length(0), 91U);
  EXPECT_EQ(together.length(1), 40U);
  EXPECT_EQ(together.length(2), 71U);
}

TEST_F(takeover_test, forks_and_rolls_back) {
  auto options = small_options();
  options.sequences = 2;
  options.cache.rollback_horizon = 8;
  takeover engine(*model_, mixed(*model_), options);
  const token_ids text = prompt(80);
  logits_of(engine, text, 64);
  engine.fork(0, 1);
  const llama_token draft[] = {1, 2, 3};
  engine.feed(0, draft);
  ASSERT_TRUE(engine.try_rollback(0, 3));
  const llama_token id = 9;
  const auto first = engine.feed(0, {&id, 1});
  const std::vector<float> kept(first.begin(), first.end());
  EXPECT_EQ(most_apart(kept, engine.feed(1, {&id, 1})), 0.0F);
}

TEST_F(takeover_test, a_call_without_memory_changes_nothing) {
  const token_ids text = prompt(300);
  const std::span<const llama_token> begin(text.data(), 50), rest(text.data() + 50, 250);
  takeover undisturbed(*model_, mixed(*model_), small_options());
  undisturbed.feed(0, begin);
  const auto expected = logits_of(undisturbed, rest, 250);
  counting_resource memory;
  {
    auto options = small_options();
    options.cache.memory = &memory;
    takeover engine(*model_, mixed(*model_), options);
    engine.feed(0, begin);
    const std::size_t rows = engine.stats(0).resident_rows;
    std::size_t refused = 0;
    for (std::size_t allowed = 0; engine.length(0) == 50; allowed += 1 + allowed / 16) {
      memory.refuse_after(allowed);  // each time a later piece of the call fails
      try {
        engine.feed(0, rest);
      } catch (const error& e) {
        ++refused;
        EXPECT_EQ(e.code(), error_code::out_of_memory);
        EXPECT_EQ(engine.length(0), 50U);
        EXPECT_EQ(engine.stats(0).resident_rows, rows);
      }
      memory.allow_all();
      if (engine.length(0) != 50) break;
    }
    EXPECT_GT(refused, 10U);
    ASSERT_TRUE(engine.try_rollback(0, 0));
    engine.clear(0);
    engine.feed(0, begin);
    EXPECT_EQ(logits_of(engine, rest, 250), expected);
  }
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST_F(takeover_test, pages_have_a_limit) {
  auto options = small_options();
  options.cache.page_tokens = 16;
  options.cache.pages = 5 * hlc::shape_of(*model_).heads();
  takeover engine(*model_, all_global(*model_), options);
  const token_ids text = prompt(100);
  EXPECT_THROW(engine.feed(0, text), error);
  EXPECT_EQ(engine.length(0), 0U);
  EXPECT_NO_THROW(engine.feed(0, {text.data(), 80}));
}

// llama.cpp asks it from within the graph, many times a token.
struct interruption {
  std::size_t left = 0;
  bool armed = false;
  static bool wanted(void* data) {
    auto& self = *static_cast<interruption*>(data);
    return self.armed && self.left-- == 0;
  }
};

class broken_off_graphs : public takeover_test, public testing::WithParamInterface<int> {};

TEST_P(broken_off_graphs, change_nothing) {
  const token_ids text = prompt(60);
  const llama_token id = 7;
  for (const auto form : {takeover_form::op_swap, takeover_form::overwrite}) {
    auto options = small_options(form);
    options.context.n_threads = options.context.n_threads_batch = GetParam();
    takeover undisturbed(*model_, mixed(*model_), options);
    undisturbed.feed(0, text);
    const auto expected = undisturbed.feed(0, {&id, 1});
    interruption stop;
    options.context.abort_callback = &interruption::wanted;
    options.context.abort_callback_data = &stop;
    takeover engine(*model_, mixed(*model_), options);
    engine.feed(0, text);
    for (const std::size_t nodes : {0U, 5U, 31U, 40U}) {
      stop = {nodes, true};
      expect_error(error_code::unsupported, {"sequence 0 at position 60", "was aborted"}, [&] {
        engine.feed(0, {&id, 1});
      });
      EXPECT_EQ(engine.length(0), 60U);
    }
    stop.armed = false;
    EXPECT_EQ(most_apart(engine.feed(0, {&id, 1}), expected), 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(threads, broken_off_graphs, testing::Values(1, 3));

TEST_F(takeover_test, clear_and_fork_without_memory_change_nothing) {
  const token_ids text = prompt(60);
  const llama_token id = 7;
  counting_resource memory;
  auto options = small_options();
  options.sequences = 2;
  options.cache.memory = &memory;
  takeover engine(*model_, mixed(*model_), options), undisturbed(*model_, mixed(*model_), options);
  for (takeover* const each : {&engine, &undisturbed}) {
    each->feed(0, text);
    each->feed(1, {text.data(), 20});
  }
  memory.refuse_after(0);
  expect_error(error_code::out_of_memory, {"sequence 0"}, [&] { engine.clear(0); });
  expect_error(error_code::out_of_memory, {"sequence 1"}, [&] { engine.fork(0, 1); });
  memory.allow_all();
  for (const std::size_t s : {0U, 1U}) {
    EXPECT_EQ(engine.length(s), undisturbed.length(s));
    EXPECT_EQ(most_apart(engine.feed(s, {&id, 1}), undisturbed.feed(s, {&id, 1})), 0.0F);
  }
}

// A fork to go back to costs tables of pages; one micro-batch needs none.
TEST_F(takeover_test, one_micro_batch_with_a_visitor_takes_no_more_memory) {
  const token_ids text = prompt(60);
  std::size_t calls[2];
  for (const bool visited : {false, true}) {
    counting_resource memory;
    auto options = small_options();
    options.cache.memory = &memory;
    takeover engine(*model_, mixed(*model_), options);
    const std::size_t before = memory.calls();
    if (visited)
      engine.feed(0, text, [](headwise::position, headwise::rows<const float>) {});
    else
      engine.feed(0, text);
    calls[visited ? 1 : 0] = memory.calls() - before;
  }
  EXPECT_EQ(calls[1], calls[0]);
}

TEST_F(takeover_test, the_visitors_error_takes_one_micro_batch_back) {
  const token_ids text = prompt(60);
  takeover engine(*model_, mixed(*model_), small_options());
  takeover undisturbed(*model_, mixed(*model_), small_options());
  for (takeover* const each : {&engine, &undisturbed}) each->feed(0, {text.data(), 40});
  const auto refuse = [](headwise::position, headwise::rows<const float>) {
    throw std::runtime_error("no more");
  };
  const std::span<const llama_token> rest(text.data() + 40, 20);
  EXPECT_THROW(engine.feed(0, rest, refuse), std::runtime_error);
  EXPECT_EQ(engine.length(0), 40U);
  EXPECT_EQ(most_apart(engine.feed(0, rest), undisturbed.feed(0, rest)), 0.0F);
}

TEST_F(takeover_test, the_visitors_error_takes_the_call_back) {
  takeover engine(*model_, mixed(*model_), small_options());
  const token_ids text = prompt(150);
  engine.feed(0, {text.data(), 10});
  const auto refuse = [](headwise::position first, headwise::rows<const float>) {
    if (first > 70) throw std::runtime_error("no more");
  };
  EXPECT_THROW(engine.feed(0, text, refuse), std::runtime_error);
  EXPECT_EQ(engine.length(0), 10U);
}

}  // namespace
}  // namespace headwise_tests
