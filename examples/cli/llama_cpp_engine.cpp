// SPDX-License-Identifier: Apache-2.0

#include "llama_cpp_engine.hpp"

#include <algorithm>
#include <iostream>
#include <memory_resource>
#include <thread>
#include <utility>

#include "llama_cpp/model_support.hpp"
#include "llama_cpp/recorder.hpp"
#include "llama_cpp/takeover.hpp"
#include "llama_cpp/vocabulary.hpp"

namespace headwise_tool {
namespace {

namespace adapter = headwise_llama_cpp;

adapter::row_type row_type_of(cache_type type) {
  switch (type) {
    case cache_type::f32:
      return adapter::row_type::f32;
    case cache_type::bf16:
      return adapter::row_type::bf16;
    case cache_type::int8:
      return adapter::row_type::int8;
    case cache_type::int8_int4:
      return adapter::row_type::int8_int4;
    case cache_type::f16:
      break;
  }
  return adapter::row_type::f16;
}

class taken_over_text final : public model_text {
 public:
  taken_over_text(llama_model& model, const headwise::blueprint& plan,
                  const adapter::takeover_options& options)
      : takeover_(model, plan, options) {}

  std::span<const float> feed(std::span<const std::int32_t> ids) override {
    return takeover_.feed(0, ids);
  }
  void feed(std::span<const std::int32_t> ids, const logits_visitor& visit) override {
    takeover_.feed(0, ids, visit);
  }
  [[nodiscard]] headwise::cache_stats stats() const override { return takeover_.stats(0); }
  [[nodiscard]] const std::string& note() const noexcept { return takeover_.form_note(); }

 private:
  adapter::takeover takeover_;
};

class llama_cpp_recorder final : public attention_recorder {
 public:
  llama_cpp_recorder(llama_model& model, const adapter::recorder_options& options)
      : recorder_(model, options) {}

  void record(const std::filesystem::path& path, std::span<const token_ids> prompts,
              const std::function<void()>& done) override {
    recorder_.record(path, prompts, done);
  }

 private:
  adapter::recorder recorder_;
};

class llama_cpp_engine final : public engine {
 public:
  llama_cpp_engine(adapter::model_handle model, std::uint32_t threads)
      : engine(facts_of(*model)), model_(std::move(model)) {
    params_.n_threads = params_.n_threads_batch = static_cast<std::int32_t>(threads);
  }

  [[nodiscard]] token_ids encode(std::string_view text, special_tokens special) const override {
    return adapter::encode(*model_, text, {false, special == special_tokens::as_tokens});
  }
  [[nodiscard]] std::string piece(std::int32_t id) const override {
    return adapter::piece_of(*model_, id);
  }
  [[nodiscard]] bool is_end(std::int32_t id) const override {
    return llama_vocab_is_eog(llama_model_get_vocab(model_.get()), id);
  }

  [[nodiscard]] std::unique_ptr<model_text> open(const headwise::blueprint& plan,
                                                 const text_options& options) override {
    adapter::takeover_options how;
    how.rows = row_type_of(options.type);
    how.capacity = options.capacity;
    how.micro_batch = options.chunk;
    how.cache = options.cache;
    how.scratch = std::pmr::new_delete_resource();  // only rows count as held
    how.context = params_;
    auto text = std::make_unique<taken_over_text>(*model_, plan, how);
    if (const std::string note = std::exchange(note_, text->note()); note != text->note())
      std::cerr << text->note() << '\n';
    return text;
  }
  [[nodiscard]] std::unique_ptr<attention_recorder> make_recorder(
      const recording_options& options) override {
    adapter::recorder_options how;
    how.capacity = options.length;
    how.sinks = options.sinks;
    how.type = options.type;
    how.last_queries = options.last_queries;
    how.context = params_;
    how.context.type_k = how.context.type_v = GGML_TYPE_F32;
    return std::make_unique<llama_cpp_recorder>(*model_, how);
  }

 private:
  [[nodiscard]] static model_facts facts_of(const llama_model& model) {
    return {adapter::shape_of(model), adapter::fingerprint_of(model),
            static_cast<std::size_t>(std::max(0, llama_model_n_ctx_train(&model))),
            adapter::encode(model, "")};
  }

  adapter::model_handle model_;
  llama_context_params params_ = llama_context_default_params();
  std::string note_;  // the last one told: why the faster form is not used
};

}  // namespace

std::unique_ptr<engine> load_llama_cpp_engine(const std::filesystem::path& path,
                                              std::uint32_t threads) {
  adapter::log_errors_only();
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  return std::make_unique<llama_cpp_engine>(adapter::load_model(path), threads);
}

}  // namespace headwise_tool
