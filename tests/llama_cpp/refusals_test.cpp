// SPDX-License-Identifier: Apache-2.0
//
// What the adapter does not take is refused at start, with what was got and what is taken.
#include "altered_model.hpp"
#include "llama_cpp/emulation.hpp"
#include "llama_cpp/recorder.hpp"
#include "llama_cpp/takeover.hpp"

#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;

hlc::takeover_options one_thread() {
  return by_one_thread<hlc::takeover_options>(256, 256);
}

class refusals_test : public testing::Test {
 protected:
  void expect_refused(error_code code, std::initializer_list<std::string_view> parts,
                      llama_model& model, const hlc::takeover_options& options) {
    expect_error(code, parts, [&] { hlc::takeover engine(model, all_global(model), options); });
  }
  template <class Alter>
  hlc::model_handle altered(const Alter& alter) {
    const auto path = folder_.path() / "altered.gguf";
    write_altered(tiny_model, path, alter);
    return load_quietly(path);
  }

  temporary_folder folder_;
  hlc::model_handle model_ = load_quietly(tiny_model);
};

TEST_F(refusals_test, latent_attention) {
  const auto model = altered(
      [](gguf_context* file) { gguf_set_val_u32(file, "llama.attention.kv_lora_rank", 512); });
  expect_refused(error_code::unsupported, {"latent attention of rank 512"}, *model, one_thread());
}

TEST_F(refusals_test, quantised_cache_types) {
  auto options = one_thread();
  options.context.type_k = GGML_TYPE_Q8_0;
  expect_refused(error_code::unsupported, {"type_k", "q8_0", "f32, f16 or bf16"}, *model_, options);
}

TEST_F(refusals_test, contexts_that_write_no_text) {
  auto options = one_thread();
  options.context.embeddings = true;
  expect_refused(error_code::unsupported, {"embeddings"}, *model_, options);
}

TEST_F(refusals_test, evaluation_callbacks_of_others) {
  const auto see_nothing = [](ggml_tensor*, bool, void*) { return false; };
  auto options = one_thread();
  options.context.cb_eval = see_nothing;
  expect_refused(error_code::unsupported, {"cb_eval"}, *model_, options);
  auto watched = by_one_thread<hlc::emulation_options>(256, 64);
  watched.context.cb_eval = see_nothing;
  expect_error(error_code::unsupported, {"cb_eval"},
               [&] { hlc::emulation engine(*model_, all_global(*model_), watched); });
}

// A size of one of the three, where llama.cpp counts in 32 bits with a sign.
struct bad_size {
  headwise::token_count capacity = 256;
  std::size_t micro_batch = 64;
  error_code code;
  std::string_view name;
};
constexpr bad_size bad_sizes[] = {
    {0, 64, error_code::invalid_argument, "options.capacity"},
    {256, 0, error_code::invalid_argument, "options.micro_batch"},
    {1U << 31U, 64, error_code::out_of_range, "options.capacity"},
    {256, std::size_t{1} << 31U, error_code::out_of_range, "options.micro_batch"},
    {256, std::size_t{1} << 32U, error_code::out_of_range, "options.micro_batch"}};

TEST_F(refusals_test, sizes_that_llama_cpp_cannot_count) {
  for (const bad_size& bad : bad_sizes) {
    expect_refused(bad.code, {"takeover", bad.name}, *model_,
                   by_one_thread<hlc::takeover_options>(bad.capacity, bad.micro_batch));
    expect_error(bad.code, {"emulation", bad.name}, [&] {
      hlc::emulation engine(*model_, all_global(*model_),
                            by_one_thread<hlc::emulation_options>(bad.capacity, bad.micro_batch));
    });
    expect_error(bad.code, {"recorder", bad.name}, [&] {
      hlc::recorder recorder(*model_,
                             by_one_thread<hlc::recorder_options>(bad.capacity, bad.micro_batch));
    });
  }
  auto options = one_thread();
  options.sequences = 0;
  expect_refused(error_code::invalid_argument, {"options.sequences"}, *model_, options);
  options.sequences = llama_max_parallel_sequences() + 1;
  expect_refused(error_code::out_of_range, {"options.sequences"}, *model_, options);
}

TEST_F(refusals_test, blueprints_of_other_models) {
  headwise::blueprint plan = all_global(*model_);
  plan.model.tokenizer = "0123456789abcdef";
  expect_error(error_code::shape_mismatch, {"tokenizer", "0123456789abcdef"},
               [&] { hlc::takeover engine(*model_, plan, one_thread()); });
  plan = headwise::uniform_blueprint({3, 4, 4, 16}, headwise::make_spec(headwise::global{}));
  expect_error(error_code::shape_mismatch, {"layers", "blueprint 3"},
               [&] { hlc::takeover engine(*model_, plan, one_thread()); });
}

TEST_F(refusals_test, files_that_are_no_models) {
  const auto path = folder_.write("no.gguf", "no model");
  expect_error(error_code::unreadable, {"no.gguf"}, [&] { load_quietly(path); });
}

TEST_F(refusals_test, calls_that_cannot_be) {
  hlc::takeover engine(*model_, all_global(*model_), one_thread());
  const token_ids long_text(257, 3), beyond{1 << 20}, good{3};
  const hlc::next_token twice[] = {{0, 3}, {0, 4}};
  expect_error(error_code::out_of_range, {"257 tokens more than 0", "at most 256"},
               [&] { engine.feed(0, long_text); });
  expect_error(error_code::out_of_range, {"1048576"}, [&] { engine.feed(0, beyond); });
  expect_error(error_code::out_of_range, {"sequence", "got 1"}, [&] { engine.feed(1, good); });
  expect_error(error_code::duplicate, {"sequence 0 again"}, [&] { engine.step(twice); });
  EXPECT_EQ(engine.length(0), 0U);
  EXPECT_TRUE(engine.feed(0, {}).empty());
  EXPECT_FALSE(engine.feed(0, good).empty());
}

}  // namespace
}  // namespace headwise_tests
