// SPDX-License-Identifier: Apache-2.0
//
// Maps that the adapter records, beside those of the small engine and beside what they must be.
#include "llama_cpp/recorder.hpp"

#include <numeric>

#include "llama/session.hpp"
#include "models.hpp"

#include "headwise/io/map_archive.hpp"
#include "support/files.hpp"

namespace headwise_tests {
namespace {

hlc::recorder_options options_of(std::size_t micro_batch) {
  auto options = by_one_thread<hlc::recorder_options>(128, micro_batch);
  options.type = headwise::element_type::f32;
  options.context.type_k = options.context.type_v = GGML_TYPE_F32;
  return options;
}

// [layers, query_heads, queries, keys] of the small engine.
std::vector<float> small_engine_maps(const llama_example::model& model, const token_ids& prompt) {
  const std::size_t n = prompt.size();
  std::vector<float> maps(model.shape().layers * model.shape().query_heads * n * n);
  llama_example::session<headwise::f32> session(
      model, headwise::uniform_blueprint(model.shape(), headwise::make_spec(headwise::global{})),
      {.capacity = static_cast<headwise::token_count>(n), .chunk = n});
  session.record_attention([&](const llama_example::attention_record& seen) {
    ASSERT_EQ(seen.weights.size(), model.shape().query_heads * n * n);
    std::copy(seen.weights.begin(), seen.weights.end(),
              maps.begin() + static_cast<std::ptrdiff_t>(seen.layer * seen.weights.size()));
  });
  session.feed(prompt);
  return maps;
}

TEST(llama_cpp_recorder, records_what_the_small_engine_does) {
  const widened_model wide(tiny_model);
  const auto model = load_quietly(wide.path());
  const llama_example::model small(wide.path());
  const auto prompts = some_prompts(*model, 2, 100);
  const temporary_folder folder;
  hlc::recorder recorder(*model, options_of(32));  // three micro-batches and a bit
  std::size_t done = 0;
  recorder.record(folder.path() / "maps.safetensors", prompts, [&] { ++done; });
  EXPECT_EQ(done, prompts.size());

  const std::filesystem::path paths[] = {folder.path() / "maps.safetensors"};
  headwise::map_archive archive(paths);
  std::vector<std::vector<float>> expected;
  for (const token_ids& prompt : prompts) expected.push_back(small_engine_maps(small, prompt));
  std::size_t maps = 0;
  std::vector<float> row(100);
  while (const auto map = archive.next()) {
    ++maps;
    const float* other = expected[map->prompt].data() +
                         (map->layer * small.shape().query_heads + map->query_head) * 100 * 100;
    for (std::size_t q = 0; q < 100; ++q, other += 100) {
      map->weights.copy_row(q, row);
      for (std::size_t k = 0; k < 100; ++k) ASSERT_NEAR(row[k], other[k], 1e-4) << map->place;
      ASSERT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1.0, 1e-5);
    }
  }
  EXPECT_EQ(maps, 2 * small.shape().layers * small.shape().query_heads);
}

TEST(llama_cpp_recorder, writes_down_the_last_queries_alone) {
  const widened_model wide(tiny_model);
  const auto model = load_quietly(wide.path());
  const auto prompts = some_prompts(*model, 2, 100);
  const temporary_folder folder;
  const std::filesystem::path all[] = {folder.path() / "all.safetensors"};
  const std::filesystem::path last[] = {folder.path() / "last.safetensors"};
  auto options = options_of(32);
  hlc::recorder(*model, options).record(all[0], prompts);
  options.last_queries = 40;  // from amid a micro-batch on
  hlc::recorder(*model, options).record(last[0], prompts);
  headwise::map_archive whole(all), end(last);
  std::size_t maps = 0;
  for (; const auto map = end.next(); ++maps) {
    const auto other = whole.next();
    ASSERT_TRUE(other);
    EXPECT_EQ(map->first_query, 60U);
    ASSERT_EQ(map->weights.count, 40U);
    for (std::size_t row = 0; row < 40; ++row)
      ASSERT_TRUE(std::ranges::equal(map->weights.row(row), other->weights.row(60 + row)));
  }
  EXPECT_FALSE(whole.next());
  EXPECT_GT(maps, 0U);
}

// A blueprint of one engine is taken by the other only where both say the same of the model.
TEST(llama_cpp_recorder, says_of_the_model_what_the_small_engine_says) {
  for (const auto& path : {tiny_model, stories_model, smollm2_model}) {
    if (!std::filesystem::exists(path)) continue;
    const auto model = load_quietly(path);
    const llama_example::model small(path);
    EXPECT_EQ(hlc::fingerprint_of(*model), small.fingerprint()) << path;
    EXPECT_EQ(hlc::shape_of(*model), small.shape()) << path;
    EXPECT_EQ(hlc::vocabulary_rules(*model, 4), llama_example::vocabulary_rules(small.tokens(), 4))
        << path;
    const std::string text = held_out_text().substr(0, 2000);
    EXPECT_EQ(hlc::encode(*model, text), small.tokens().encode(text)) << path;
  }
}

TEST(llama_cpp_recorder, leaves_no_file_where_a_prompt_is_too_long) {
  const auto model = load_quietly(tiny_model);
  const temporary_folder folder;
  hlc::recorder recorder(*model, options_of(64));
  const std::vector<token_ids> prompts{token_ids(50, 3), token_ids(129, 3)};
  EXPECT_THROW(recorder.record(folder.path() / "maps.safetensors", prompts), headwise::error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_NO_THROW(recorder.record(folder.path() / "maps.safetensors", std::span(prompts).first(1)));
}

}  // namespace
}  // namespace headwise_tests
