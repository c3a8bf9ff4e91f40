// SPDX-License-Identifier: Apache-2.0
//
// The engine on headwise against a full-cache forward pass in double, and what a session promises.

#include "llama/session.hpp"

#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>

#include "engine/gguf_builder.hpp"
#include "engine/reference_llama.hpp"
#include "llama/sampler.hpp"

#include "support/allocation_watch.hpp"

namespace headwise_tests {
namespace {

using headwise::blueprint;
using headwise::error_code;
using headwise::policy_spec;
using llama_example::model;
using llama_example::session;
using llama_example::session_options;
using ids = std::vector<std::int32_t>;

model load(const made_model& made) {
  const temporary_folder folder;
  return model(folder.write("model.gguf", made.file().bytes()));
}

ids random_ids(std::size_t count, std::size_t vocabulary, std::uint32_t seed = 7) {
  random_source random(seed);
  ids result(count);
  for (auto& id : result)
    id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(vocabulary)));
  return result;
}

blueprint all_global(const model& weights) {
  return headwise::uniform_blueprint(weights.shape(), headwise::make_spec(headwise::global{}));
}

// Every head another policy: global, windows of 1, 5 and 9, line ends with a window of 4.
blueprint mixed_plan(const model& weights) {
  blueprint plan = all_global(weights);
  plan.tokens = llama_example::vocabulary_rules(weights.tokens(), 2);
  const auto kept = headwise::token_classes::sink | headwise::token_classes::punctuation;
  const std::vector<policy_spec> policies{
      headwise::make_spec(headwise::global{}), headwise::make_spec(headwise::local_window(1)),
      headwise::make_spec(headwise::local_window(5)),
      headwise::make_spec(headwise::union_of<headwise::special_tokens, headwise::local_window>(
          headwise::special_tokens(kept), headwise::local_window(4))),
      headwise::make_spec(headwise::local_window(9))};
  for (std::size_t i = 0; i < plan.heads.size(); ++i) {
    plan.heads[i].policy = policies[i % policies.size()];
    plan.heads[i].name = std::to_string(i % policies.size());
  }
  return plan;
}

// What a blueprint lets each query of a text see, asked of the policies themselves.
visibility sees_as_planned(const model& weights, const blueprint& plan, const ids& text) {
  std::vector<headwise::builtin_policies::variant> policies;
  for (const auto& head : plan.heads) {
    policies.push_back(headwise::make_policy<headwise::builtin_policies>(head.policy, "test"));
  }
  const auto tokens =
      headwise::make_classifier(plan.tokens, static_cast<std::uint32_t>(weights.sizes().vocabulary))
          .tokens(std::span<const std::int32_t>(text));
  const std::size_t kv_heads = plan.shape.kv_heads;
  return [=](std::uint32_t layer, std::uint32_t kv_head, std::size_t query, std::size_t key) {
    const auto lifetime = std::visit([&](const auto& p) { return p.lifetime(tokens[key]); },
                                     policies[layer * kv_heads + kv_head]);
    return query - key < lifetime;
  };
}

struct difference {
  double greatest = 0.0;  // absolute, of any logit at any position
  double mean = 0.0;      // of the absolute differences
};

template <class Codec>
difference differ(const model& weights, const blueprint& plan, const ids& text,
                  const reference_llama::table& expected, session_options options) {
  session<Codec> engine(weights, plan, options);
  difference result;
  std::size_t positions = 0;
  double sum = 0.0;
  engine.feed(text, [&](headwise::position first, llama_example::rows<const float> logits) {
    for (std::size_t t = 0; t < logits.count; ++t, ++positions) {
      EXPECT_EQ(first + t, positions);
      for (std::size_t i = 0; i < logits.width; ++i) {
        const double apart = std::abs(double{logits[t][i]} - expected[first + t][i]);
        result.greatest = std::max(result.greatest, std::isnan(apart) ? HUGE_VAL : apart);
        sum += apart;
      }
    }
  });
  EXPECT_EQ(positions, text.size());
  result.mean = sum / static_cast<double>(positions * weights.sizes().vocabulary);
  return result;
}

std::vector<made_model> model_variants() {
  std::vector<made_model> variants(7);
  variants[1].tied = false;
  variants[2].architecture = "qwen2";
  variants[3].kv_heads = 4;
  variants[4].kv_heads = 1;
  variants[4].head_dim = 10;
  variants[4].rope_dimensions = 10;
  variants[5].rope_dimensions = 4;
  variants[6].rope_factors = true;
  return variants;
}

TEST(session, all_global_equals_a_full_cache_reference) {
  for (const made_model& made : model_variants()) {
    const model weights = load(made);
    const ids text = random_ids(90, made_model::vocabulary);
    const auto expected = reference_llama(weights).logits(text);
    const blueprint plan = all_global(weights);
    const session_options options{.chunk = 16};
    EXPECT_LT(differ<headwise::f32>(weights, plan, text, expected, options).greatest, 2e-5);
    // Rows of 11 and of 8 significant bits: logits of size 1 move in the second digit.
    EXPECT_LT(differ<headwise::f16>(weights, plan, text, expected, options).greatest, 0.04);
    EXPECT_LT(differ<headwise::bf16>(weights, plan, text, expected, options).greatest, 0.32);
  }
}

TEST(session, a_plan_equals_the_reference_that_masks_what_the_policies_drop) {
  const model weights = load({.layers = 3});
  const blueprint plan = mixed_plan(weights);
  const ids text = random_ids(120, made_model::vocabulary);
  const auto expected = reference_llama(weights, sees_as_planned(weights, plan, text)).logits(text);
  const auto unmasked = reference_llama(weights).logits(text);
  const session_options options{.chunk = 16};
  EXPECT_LT(differ<headwise::f32>(weights, plan, text, expected, options).greatest, 2e-5);
  EXPECT_GT(differ<headwise::f32>(weights, plan, text, unmasked, options).greatest, 0.1);
}

TEST(session, chunking_never_matters) {
  const model weights = load({.layers = 3});
  const blueprint plan = mixed_plan(weights);
  const ids text = random_ids(100, made_model::vocabulary);
  const auto expected = reference_llama(weights, sees_as_planned(weights, plan, text)).logits(text);
  std::size_t resident = 0;
  for (const std::size_t chunk :
       {std::size_t{100}, std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
    session<headwise::f32> engine(weights, plan, {.chunk = chunk});
    const auto logits = engine.feed(text);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      ASSERT_NEAR(double{logits[i]}, expected.back()[i], 2e-5) << "chunk " << chunk;
    }
    if (resident == 0) resident = engine.stats().resident_rows;
    EXPECT_EQ(engine.stats().resident_rows, resident) << "chunk " << chunk;
    EXPECT_LT(engine.stats().resident_rows, engine.stats().full_rows);
  }
}

TEST(session, heavy_hitters_follow_the_attention_in_chunks_of_any_size) {
  const model weights = load({.layers = 3});
  const ids text = random_ids(100, made_model::vocabulary);
  const auto plan_with = [&](const headwise::heavy_hitters& pool) {
    return headwise::uniform_blueprint(
        weights.shape(), headwise::make_spec(headwise::union_of(headwise::local_window(5), pool)));
  };
  // A pool for all that leaves the window is a full cache.
  const auto everything = reference_llama(weights).logits(text);
  EXPECT_LT(differ<headwise::f32>(weights, plan_with(headwise::heavy_hitters(95)), text, everything,
                                  {.chunk = 16})
                .greatest,
            2e-5);
  std::vector<float> whole;
  for (const std::size_t chunk : {std::size_t{100}, std::size_t{1}, std::size_t{7}}) {
    session<headwise::f32> engine(weights, plan_with(headwise::heavy_hitters(0.25, 95)),
                                  {.capacity = 100, .chunk = chunk});
    const auto logits = engine.feed(text);
    if (whole.empty()) whole.assign(logits.begin(), logits.end());
    for (std::size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], whole[i], 2e-5F) << "chunk " << chunk;
    // A quarter of the capacity, and the window.
    EXPECT_EQ(engine.stats().resident_rows, weights.shape().heads() * (25 + 5));
  }
}

TEST(session, recorded_attention_is_what_the_reference_attends) {
  const model weights = load({.layers = 2});
  const ids text = random_ids(40, made_model::vocabulary);
  for (const blueprint& plan : {all_global(weights), mixed_plan(weights)}) {
    reference_llama reference(weights, sees_as_planned(weights, plan, text));
    reference.record();
    ASSERT_EQ(reference.logits(text).size(), text.size());
    for (const std::size_t chunk : {std::size_t{40}, std::size_t{16}}) {
      session<headwise::f32> engine(weights, plan, {.chunk = chunk});
      std::size_t rows_seen = 0;
      engine.record_attention([&](const llama_example::attention_record& map) {
        ASSERT_EQ(map.weights.size(), map.query_heads * map.queries * map.keys);
        ASSERT_EQ(map.keys, map.first_query + map.queries);
        for (std::size_t i = 0; i < map.weights.size(); ++i) {
          const std::size_t key = i % map.keys;
          const std::size_t query = i / map.keys % map.queries;
          const std::size_t head = i / map.keys / map.queries;
          const double expected =
              reference.attention()[map.layer][head][map.first_query + query][key];
          ASSERT_NEAR(double{map.weights[i]}, expected, 1e-5);
          ASSERT_EQ(expected == 0.0, map.weights[i] == 0.0F);
        }
        rows_seen += map.query_heads * map.queries;
      });
      engine.feed(text);
      EXPECT_EQ(rows_seen, weights.shape().layers * weights.shape().query_heads * text.size());
    }
  }
}

TEST(session, rolled_back_tokens_leave_no_trace) {
  const model weights = load({});
  session_options options{.chunk = 8};
  options.cache.rollback_horizon = 6;
  session<headwise::f32> engine(weights, mixed_plan(weights), options);
  session<headwise::f32> fresh(weights, mixed_plan(weights), options);
  const ids text = random_ids(40, made_model::vocabulary);
  const ids draft = random_ids(6, made_model::vocabulary, 99);
  engine.feed(std::span(text).first(30));
  engine.feed(draft);
  ASSERT_TRUE(engine.try_rollback(6));
  fresh.feed(std::span(text).first(30));
  const auto got = engine.feed(std::span(text).subspan(30));
  const auto expected = fresh.feed(std::span(text).subspan(30));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin()));
}

TEST(session, decode_allocates_nothing_from_the_second_token_on) {
  const model weights = load({});
  blueprint plan = mixed_plan(weights);
  for (auto& head : plan.heads) {
    if (head.policy.kind == "global") head.policy = headwise::make_spec(headwise::local_window(64));
  }
  session_options options{.capacity = 2200};
  options.cache.pages = options.cache.reserved_pages = 400;
  session<headwise::f16> engine(weights, plan, options);
  std::int32_t next = 'A';
  const auto step = [&] { next = llama_example::greedy(engine.feed({&next, 1})); };
  step();
  const allocation_watch watch;
  for (int i = 0; i < 2000; ++i) step();
  EXPECT_EQ(watch.count(), 0U);
  EXPECT_LT(engine.stats().kept_ratio(), 0.2);
}

TEST(session, ids_outside_of_the_vocabulary_are_refused_and_change_nothing) {  // J08
  const model weights = load({});
  session<headwise::f16> engine(weights, all_global(weights));
  engine.feed(ids{5});
  for (const std::int32_t bad : {-1, 259, std::numeric_limits<std::int32_t>::max()}) {
    expect_error(error_code::out_of_range, {"token ids[1]", std::to_string(bad)}, [&] {
      engine.feed(ids{5, bad});
    });
    EXPECT_EQ(engine.length(), 1U);
  }
}

TEST(session, what_does_not_fit_is_an_error) {
  const model weights = load({});
  const blueprint plan = all_global(weights);
  session<headwise::f16> small(weights, plan, {.capacity = 4});
  expect_error(error_code::out_of_range, {"5 tokens", "at most 4"}, [&] {
    small.feed(ids{1, 2, 3, 4, 5});
  });
  session_options options;
  options.cache.pages = 3;  // four heads need four
  session<headwise::f16> starved(weights, plan, options);
  expect_error(error_code::out_of_memory, {"position 0", "4 free pages"},
               [&] { starved.feed(ids{1}); });
  expect_error(error_code::invalid_argument, {"chunk"},
               [&] { session<headwise::f16>(weights, plan, {.chunk = 0}); });
}

TEST(session, a_blueprint_of_another_model_or_tokenizer_is_refused) {  // J10
  const model weights = load({});
  const model wider = load({.kv_heads = 4});
  expect_error(error_code::shape_mismatch, {"kv_heads", "4", "2"},
               [&] { session<headwise::f16>(weights, all_global(wider)); });
  blueprint plan = all_global(weights);
  plan.model = weights.fingerprint();
  session<headwise::f16>(weights, plan).feed(ids{1});
  plan.model.vocab_size = 32000;
  expect_error(error_code::shape_mismatch, {"vocab_size", "32000", "259"},
               [&] { session<headwise::f16>(weights, plan); });
  plan.model = weights.fingerprint();
  plan.model.tokenizer[0] = plan.model.tokenizer[0] == '0' ? '1' : '0';
  expect_error(error_code::shape_mismatch, {"tokenizer", plan.model.tokenizer},
               [&] { session<headwise::f16>(weights, plan); });
}

// Real models: the one in the tree and, where the shared folder is there, a second one.
std::vector<std::filesystem::path> real_models() {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path own = HEADWISE_SOURCE_DIR "/examples/tiny_model";
  for (const auto& entry : std::filesystem::directory_iterator(own)) {
    if (entry.path().extension() == ".gguf") found.push_back(entry.path());
  }
  const std::filesystem::path shared = HEADWISE_SHARED_DIR "/models/stories260K.gguf";
  if (std::filesystem::exists(shared)) found.push_back(shared);
  return found;
}

ids real_text(const model& weights, std::size_t count) {
  std::ifstream in(HEADWISE_SOURCE_DIR "/examples/tiny_model/heldout.txt", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  ids result = weights.tokens().encode(std::string_view(text).substr(0, 16 * count));
  result.resize(std::min(count, result.size()));
  return result;
}

TEST(session, real_models_equal_the_reference_over_1024_tokens) {
  const auto paths = real_models();
  if (paths.empty()) GTEST_SKIP() << "no model in examples/tiny_model or " << HEADWISE_SHARED_DIR;
  for (const auto& path : paths) {
    const model weights(path);
    const ids text = real_text(weights, 1024);
    ASSERT_EQ(text.size(), 1024U);
    const auto expected = reference_llama(weights).logits(text);
    const blueprint plan = all_global(weights);
    const difference exact = differ<headwise::f32>(weights, plan, text, expected, {});
    const difference halves = differ<headwise::f16>(weights, plan, text, expected, {});
    std::cout << path.filename().string() << ": logits differ by at most " << exact.greatest
              << " (f32), " << halves.greatest << " (f16; mean " << halves.mean << ")\n";
    EXPECT_LT(exact.greatest, 1e-4) << path;
    // An f16 row is 2^13 times coarser than an f32 row; on average that stays in the third digit.
    EXPECT_LT(halves.greatest, 0.25) << path;
    EXPECT_LT(halves.mean, 0.01) << path;
  }
}

TEST(session, a_story_model_writes_a_story) {
  const std::filesystem::path path = HEADWISE_SHARED_DIR "/models/stories260K.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const model weights(path);
  session<headwise::f16> engine(weights, all_global(weights));
  auto logits = engine.feed(weights.tokens().encode("Once upon a time"));
  ids story;
  for (int i = 0; i < 100; ++i) {
    story.push_back(llama_example::greedy(logits));
    logits = engine.feed(std::span(&story.back(), 1));
  }
  const std::string text = weights.tokens().decode(story);
  EXPECT_TRUE(text.starts_with(", there was a little girl named Lily. She loved to play outside"))
      << text;
}

}  // namespace
}  // namespace headwise_tests
