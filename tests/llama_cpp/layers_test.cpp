// SPDX-License-Identifier: Apache-2.0
//
// Models whose layers are not what their metadata, or the first of them, let expect: whatever looks
// at the graph says so, before it reads or writes where the layer has nothing.
#include "llama_cpp/emulation.hpp"
#include "llama_cpp/recorder.hpp"
#include "llama_cpp/takeover.hpp"
#include "random_models.hpp"

#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using error_parts = std::initializer_list<std::string_view>;

template <class Options>
Options small() {
  return by_one_thread<Options>(256, 32);
}

void expect_no_takeover(llama_model& model, const error_parts& parts) {
  expect_error(error_code::unsupported, parts, [&] {
    hlc::takeover engine(model, all_global(model), small<hlc::takeover_options>());
  });
}

void expect_no_emulation(llama_model& model, const error_parts& parts) {
  expect_error(error_code::unsupported, parts, [&] {
    hlc::emulation engine(model, all_global(model), small<hlc::emulation_options>());
    engine.feed(some_ids(40, 7));
  });
}

void expect_no_recorder(llama_model& model, const error_parts& parts) {
  const temporary_folder folder;
  const std::vector<token_ids> prompts{some_ids(40, 7)};
  expect_error(error_code::unsupported, parts, [&] {
    hlc::recorder recorder(model, small<hlc::recorder_options>());
    recorder.record(folder.path() / "maps.safetensors", prompts);
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

using counts = std::vector<std::uint32_t>;

TEST(llama_cpp_layers, with_fewer_query_heads_are_refused) {
  const auto model = make_small_model("deci", {{"attention.head_count", counts{4, 2}},
                                               {"attention.head_count_kv", counts{2, 2}},
                                               {"attention.key_length", 16U},
                                               {"attention.value_length", 16U},
                                               {"feed_forward_length", counts{96, 96}}});
  const error_parts parts{"layer 1", "2 query heads", "expected 4 query heads"};
  expect_no_takeover(*model, parts);
  expect_no_emulation(*model, parts);
  expect_no_recorder(*model, parts);
}

TEST(llama_cpp_layers, with_fewer_kv_heads_are_refused) {
  const auto model = make_small_model("deci", {{"attention.head_count", counts{4, 4}},
                                               {"attention.head_count_kv", counts{2, 1}},
                                               {"feed_forward_length", counts{96, 96}}});
  const error_parts parts{"layer 1", "1 KV heads", "2 KV heads"};
  expect_no_takeover(*model, {"the model's graph", "other tokens or heads"});
  expect_no_emulation(*model, parts);
  expect_no_recorder(*model, parts);
}

TEST(llama_cpp_layers, with_capped_logits_are_recorded_alone) {
  const auto model = make_small_model("gemma2", {{"attention.sliding_window", 0U}});
  expect_no_takeover(*model, {"soft-capped logits"});
  expect_no_emulation(*model, {"kq_tanh-0", "capped"});
}

TEST(llama_cpp_layers, that_see_what_comes_later_are_refused) {
  const auto model = make_small_model("llama", {{"attention.causal", false}});
  const error_parts parts{"not causal"};
  expect_no_takeover(*model, parts);
  expect_no_emulation(*model, parts);
  expect_no_recorder(*model, parts);
}

// Models with rotation factors for short and for long texts, whether the file names the
// scaling or not: llama.cpp takes those for its number of cells, of which the takeover has few.
TEST(llama_cpp_layers, that_rotate_long_texts_otherwise_take_short_ones) {
  const hlc::metadata_map said{{"rope.scaling.type", std::string("longrope")},
                               {"rope.scaling.original_context_length", 300U}},
      half_said{{"rope.scaling.original_context_length", 300U}}, unsaid{{"context_length", 300U}};
  for (const hlc::metadata_map& metadata : {said, half_said, unsaid}) {
    const auto model = make_small_model("phi3", metadata);
    auto options = small<hlc::takeover_options>();
    options.capacity = 300;
    EXPECT_NO_THROW(hlc::takeover(*model, all_global(*model), options));
    options.capacity = 301;
    expect_error(error_code::unsupported, {"texts of 301 tokens", "cache of 256", "at most 300"},
                 [&] { hlc::takeover(*model, all_global(*model), options); });
    options.micro_batch = 512;  // as many cells: the factors for long texts
    EXPECT_NO_THROW(hlc::takeover(*model, all_global(*model), options));
  }
  // Factors that do not depend on the length.
  const auto model = make_small_model("llama", {{"context_length", 100U}});
  EXPECT_NO_THROW(hlc::takeover(*model, all_global(*model), small<hlc::takeover_options>()));
}

}  // namespace
}  // namespace headwise_tests
