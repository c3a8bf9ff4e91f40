// SPDX-License-Identifier: Apache-2.0
//
// Models and texts for the tests of the adapter: the one of the tree, and larger ones where they
// are installed.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "llama_cpp/handles.hpp"
#include "llama_cpp/model_support.hpp"
#include "llama_cpp/vocabulary.hpp"

#include "headwise/blueprint/blueprint.hpp"
#include "support/files.hpp"

namespace headwise_tests {

namespace hlc = headwise_llama_cpp;
using token_ids = std::vector<llama_token>;

inline const std::filesystem::path tiny_folder =
    std::filesystem::path(HEADWISE_SOURCE_DIR) / "examples/tiny_model";
inline const std::filesystem::path tiny_model = tiny_folder / "tiny.gguf";
inline const std::filesystem::path stories_model =
    std::filesystem::path(HEADWISE_SHARED_DIR) / "models/stories260K.gguf";
inline const std::filesystem::path smollm2_model =
    std::filesystem::path(HEADWISE_MODEL_DIR) / "SmolLM2-135M-Instruct.Q4_1.gguf";

// Without the messages of llama.cpp.
inline hlc::model_handle load_quietly(const std::filesystem::path& path) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  return hlc::load_model(path);
}

// Options of takeover, emulation or recorder.
template <class Options>
Options by_one_thread(headwise::token_count capacity, std::size_t micro_batch) {
  Options options;
  options.capacity = capacity;
  options.micro_batch = micro_batch;
  options.context.n_threads = options.context.n_threads_batch = 1;
  return options;
}

// A takeover's, with rows of 32 bits.
template <class Options, class Form>
Options by_one_thread(headwise::token_count capacity, std::size_t micro_batch, Form form) {
  auto options = by_one_thread<Options>(capacity, micro_batch);
  options.rows = decltype(options.rows)::f32;
  options.form = form;
  return options;
}

inline std::string held_out_text() {
  std::ifstream file(tiny_folder / "heldout.txt", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A model with its weights turned into floats, by llama.cpp itself: the same numbers, but nothing
// is rounded when it runs. The file is gone with the object.
class widened_model {
 public:
  explicit widened_model(const std::filesystem::path& from)
      : path_(folder_.path() / from.filename()) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = LLAMA_FTYPE_ALL_F32;
    params.allow_requantize = true;
    EXPECT_EQ(llama_model_quantize(from.string().c_str(), path_.string().c_str(), &params), 0U);
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  temporary_folder folder_;
  std::filesystem::path path_;
};

// `count` prompts of `length` tokens, from all over the held-out text.
inline std::vector<token_ids> some_prompts(const llama_model& model, std::size_t count,
                                           std::size_t length) {
  const std::string text = held_out_text();
  std::vector<token_ids> prompts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = text.find(' ', i * (text.size() / (count + 1)));
    prompts.push_back(hlc::encode(model, std::string_view(text).substr(from + 1, 8 * length + 64)));
    EXPECT_GE(prompts.back().size(), length);
    prompts.back().resize(length);
  }
  return prompts;
}

inline headwise::blueprint all_global(const llama_model& model) {
  return headwise::uniform_blueprint(hlc::shape_of(model), headwise::make_spec(headwise::global{}));
}

}  // namespace headwise_tests

// In a test: goes no further where the model is not installed.
#define HEADWISE_NEEDS_MODEL(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << (path).string()
