// SPDX-License-Identifier: Apache-2.0

#include "small_engine.hpp"

#include "llama/session.hpp"

#include "headwise/io/map_writer.hpp"

namespace headwise_tool {
namespace {

using llama_example::model;

template <headwise::row_codec Key, headwise::row_codec Value>
class small_text final : public model_text {
 public:
  small_text(const model& weights, const headwise::blueprint& plan, const text_options& options)
      : session_(weights, plan, {options.capacity, options.chunk, options.cache}) {}

  std::span<const float> feed(std::span<const std::int32_t> ids) override {
    return session_.feed(ids);
  }
  void feed(std::span<const std::int32_t> ids, const logits_visitor& visit) override {
    session_.feed(ids, visit);
  }
  [[nodiscard]] headwise::cache_stats stats() const override { return session_.stats(); }

 private:
  llama_example::session<Key, Value> session_;
};

class small_recorder final : public attention_recorder {
 public:
  small_recorder(const model& weights, const model_facts& facts, const recording_options& options)
      : model_(weights),
        info_{facts.shape, facts.fingerprint,
              llama_example::vocabulary_rules(weights.tokens(), options.sinks)},
        options_(options) {}

  void record(const std::filesystem::path& path, std::span<const token_ids> prompts,
              const std::function<void()>& done) override {
    headwise::map_writer writer(path, info_, prompts, options_.type, options_.last_queries);
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      run(prompts[p], p, writer);
      done();
    }
    writer.finish();
  }

 private:
  void run(const token_ids& prompt, std::size_t number, headwise::map_writer& writer) const {
    const auto full =
        headwise::uniform_blueprint(info_.shape, headwise::make_spec(headwise::global{}));
    llama_example::session_options session_options;
    session_options.capacity = options_.length;
    llama_example::session<headwise::f32> session(model_, full, session_options);
    session.record_attention([&](const llama_example::attention_record& seen) {
      const std::size_t size = seen.queries * seen.keys;
      for (std::size_t head = 0; head < seen.query_heads; ++head)
        writer.write(number, seen.layer, static_cast<std::uint32_t>(head), seen.first_query,
                     {seen.weights.data() + head * size, seen.queries, seen.keys});
    });
    session.feed(prompt);
  }

  const model& model_;
  headwise::map_info info_;
  recording_options options_;
};

class small_engine final : public engine {
 public:
  explicit small_engine(std::unique_ptr<const model> weights)
      : engine(facts_of(*weights)), model_(std::move(weights)) {}

  [[nodiscard]] token_ids encode(std::string_view text, special_tokens special) const override {
    return model_->tokens().encode(
        text, {.bos = false, .special_tokens = special == special_tokens::as_tokens});
  }
  [[nodiscard]] std::string piece(std::int32_t id) const override {
    return model_->tokens().piece(id);
  }
  [[nodiscard]] bool is_end(std::int32_t id) const override { return model_->tokens().is_end(id); }

  [[nodiscard]] std::unique_ptr<model_text> open(const headwise::blueprint& plan,
                                                 const text_options& options) override {
    return with_codecs(options.type, [&]<class Key, class Value>(row_codecs<Key, Value>) {
      return std::unique_ptr<model_text>(
          std::make_unique<small_text<Key, Value>>(*model_, plan, options));
    });
  }
  [[nodiscard]] bool runs_texts_at_once() const override { return true; }
  [[nodiscard]] std::unique_ptr<attention_recorder> make_recorder(
      const recording_options& options) override {
    return std::make_unique<small_recorder>(*model_, facts(), options);
  }

 private:
  [[nodiscard]] static model_facts facts_of(const model& weights) {
    const auto& tokenizer = weights.tokens();
    token_ids start;
    if (tokenizer.adds_bos() && tokenizer.bos()) start.push_back(*tokenizer.bos());
    return {weights.shape(), weights.fingerprint(), weights.sizes().context_length,
            std::move(start)};
  }

  std::unique_ptr<const model> model_;
};

}  // namespace

std::unique_ptr<engine> load_small_engine(const std::filesystem::path& path) {
  return std::make_unique<small_engine>(std::make_unique<const model>(path));
}

}  // namespace headwise_tool
