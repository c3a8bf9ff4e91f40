// SPDX-License-Identifier: Apache-2.0
//
// What the commands ask of whatever runs a model: the small engine of examples/llama, or stock
// llama.cpp with the rows taken over (examples/llama_cpp). Both say the same of a model, so that
// maps and blueprints of one serve the other. One thread at a time, but for texts of an engine that
// says otherwise; an engine outlives its texts and recorders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache_type.hpp"

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/core/rows.hpp"
#include "headwise/io/element_type.hpp"
#include "headwise/manager/cache_config.hpp"
#include "headwise/manager/stats.hpp"

namespace headwise_tool {

using token_ids = std::vector<std::int32_t>;

enum class engine_kind { small, llama_cpp };

struct engine_choice {
  engine_kind kind = engine_kind::small;
  std::uint32_t threads = 0;  // of llama.cpp; 0: one for each core
};

struct text_options {
  headwise::token_count capacity = 0;  // the most tokens
  std::size_t chunk = 64;              // the most that go through a layer together
  cache_type type = cache_type::f16;
  headwise::cache_config cache = {};
};

// One text in a model, with the rows that a blueprint keeps.
class model_text {
 public:
  // logits: [tokens, vocabulary], valid during the call.
  using logits_visitor =
      std::function<void(headwise::position first, headwise::rows<const float> logits)>;

  virtual ~model_text() = default;
  // Appends tokens; the last one's logits, [vocabulary], valid until the next call.
  virtual std::span<const float> feed(std::span<const std::int32_t> ids) = 0;
  // The same with the logits of all of them.
  virtual void feed(std::span<const std::int32_t> ids, const logits_visitor& visit) = 0;
  [[nodiscard]] virtual headwise::cache_stats stats() const = 0;
};

struct recording_options {
  headwise::token_count length = 0;  // of the longest prompt
  headwise::token_count sinks = 4;
  headwise::element_type type = headwise::element_type::f16;
  headwise::token_count last_queries = headwise::max_length;  // of each prompt
};

// What every query head of a full cache attends to.
class attention_recorder {
 public:
  virtual ~attention_recorder() = default;
  // Writes the maps of all prompts into one file, which appears whole or not at all; done() after
  // each prompt.
  virtual void record(const std::filesystem::path& path, std::span<const token_ids> prompts,
                      const std::function<void()>& done) = 0;
};

struct model_facts {
  headwise::model_shape shape;
  headwise::model_fingerprint fingerprint;
  std::size_t context_length = 0;  // what the model was trained on; 0: the file does not say
  token_ids start;                 // what a text begins with: one token or none
};

// Whatever cannot be is a headwise::error.
class engine {
 public:
  virtual ~engine() = default;
  [[nodiscard]] const model_facts& facts() const noexcept { return facts_; }

  enum class special_tokens { as_text, as_tokens };
  // Without what a text begins with.
  [[nodiscard]] virtual token_ids encode(std::string_view text, special_tokens special) const = 0;
  // The bytes that one token adds to a text.
  [[nodiscard]] virtual std::string piece(std::int32_t id) const = 0;
  // Whether a text stops at this token.
  [[nodiscard]] virtual bool is_end(std::int32_t id) const = 0;

  // The blueprint must be for this model.
  [[nodiscard]] virtual std::unique_ptr<model_text> open(const headwise::blueprint& plan,
                                                         const text_options& options) = 0;
  // Whether several threads may open() and feed texts at once, each its own.
  [[nodiscard]] virtual bool runs_texts_at_once() const { return false; }
  [[nodiscard]] virtual std::unique_ptr<attention_recorder> make_recorder(
      const recording_options& options) = 0;

 protected:
  explicit engine(model_facts facts) : facts_(std::move(facts)) {}

 private:
  model_facts facts_;
};

// Throws headwise::error where the file is no model that the engine runs, or the tool was built
// without that engine; usage_error on threads for an engine that has one.
[[nodiscard]] std::unique_ptr<engine> load_engine(const engine_choice& choice,
                                                  const std::filesystem::path& model);

}  // namespace headwise_tool
