// SPDX-License-Identifier: Apache-2.0
//
// takeover: a model that stock llama.cpp runs, with headwise holding the rows: each head keeps what
// a blueprint gives it, and llama.cpp's own cache has cells for one micro-batch, emptied after
// each.
//
//   auto model = load_model("model.gguf");
//   takeover engine(*model, headwise::load_blueprint("blueprint.json"), {.capacity = 8192});
//   auto logits = engine.feed(0, encode(*model, text));       // [vocabulary], of the last token
//   logits = engine.feed(0, {&next, 1});
//
// Texts may be longer than llama.cpp's cells: positions are given with every batch. Several
// sequences are fed one by one, or advanced together by one token each (step).
// All or nothing: a call that throws leaves every sequence as it was before, and the next call
// works. Memory: rows, pages and their tables come from options.cache.memory.
// One owner thread; the model must outlive it, and may serve others at the same time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hooked_context.hpp"
#include "row_store.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_llama_cpp {

// automatic: op_swap where it proves to give stock's logits at start, else overwrite.
enum class takeover_form { automatic, op_swap, overwrite };

struct takeover_options {
  row_type rows = row_type::f16;
  takeover_form form = takeover_form::automatic;
  headwise::token_count capacity = 4096;  // tokens of the longest sequence
  std::size_t sequences = 1;
  std::size_t micro_batch = 256;  // the most tokens that the graph runs at once
  headwise::cache_config cache = {};
  // Of what threads compute with; nullptr: cache.memory.
  std::pmr::memory_resource* scratch = nullptr;
  // Threads, rotation and the like. Its cache types must not be quantised, and are not used.
  llama_context_params context = llama_context_default_params();
};

// The next token of a sequence.
struct next_token {
  std::size_t sequence;
  llama_token id;
};

class takeover {
 public:
  // Logits of the tokens from position `first` on, [tokens, vocabulary]; valid during the call.
  using logits_visitor =
      std::function<void(headwise::position first, headwise::rows<const float> logits)>;

  // Throws headwise::error where the model, the options or a blueprint for another model cannot be
  // taken, or where no form that may be used gives stock's logits.
  takeover(llama_model& model, const headwise::blueprint& plan, const takeover_options& options);

  // Appends tokens to a sequence; the last one's logits, [vocabulary], valid until the next call.
  // Throws headwise::error: out_of_memory, out_of_range (ids, lengths), unsupported (llama.cpp
  // could not run, or ran another graph).
  std::span<const float> feed(std::size_t sequence, std::span<const llama_token> ids);
  // The same, with the logits of all tokens, a micro-batch at a time. What the visitor throws takes
  // the call back; it must not call the engine.
  void feed(std::size_t sequence, std::span<const llama_token> ids, const logits_visitor& visit);
  // One token for each of several sequences, in one run of the graph: at most micro_batch, each
  // sequence once. Logits [next.size(), vocabulary], valid until the next call.
  headwise::rows<const float> step(std::span<const next_token> next);

  [[nodiscard]] headwise::token_count length(std::size_t sequence) const;
  [[nodiscard]] headwise::cache_stats stats(std::size_t sequence) const;
  [[nodiscard]] headwise::manager_stats stats() const noexcept { return rows_->stats(); }
  // As sequence::try_rollback.
  [[nodiscard]] bool try_rollback(std::size_t sequence, headwise::token_count tokens);
  // Empties a sequence. Throws headwise::error(out_of_memory), and then it is as it was.
  void clear(std::size_t sequence);
  // Makes `to` what `from` is; they share pages, and go on apart. Throws
  // headwise::error(out_of_memory), and then `to` is as it was.
  void fork(std::size_t from, std::size_t to);

  // op_swap or overwrite, and why not op_swap; empty where it was not tried or is used.
  [[nodiscard]] graph_form form() const noexcept { return form_; }
  [[nodiscard]] const std::string& form_note() const noexcept { return form_note_; }
  [[nodiscard]] const headwise::model_shape& shape() const noexcept { return rows_->shape(); }
  [[nodiscard]] llama_context* context() const noexcept { return context_->get(); }

 private:
  enum class wanted { last, all };
  class open_batch;

  [[nodiscard]] std::unique_ptr<hooked_context> make_checked_context(llama_model& model);
  void check_sequence(std::size_t sequence) const;
  void check_ids(std::size_t sequence, std::span<const llama_token> ids) const;
  // Runs micro-batches, and takes them all back if one fails; visit(first, count) once each is
  // computed.
  void run_all(std::size_t sequence, std::span<const llama_token> ids, wanted logits,
               const std::function<void(headwise::position, std::size_t)>& visit);
  // Adds a sequence's tokens to the micro-batch that is being put together.
  void add(std::size_t sequence, std::span<const llama_token> ids, wanted logits);
  // Opens the steps of the micro-batch and runs the graph.
  void compute();

  takeover_options options_;
  std::size_t vocabulary_;
  std::size_t workers_;
  graph_form form_ = graph_form::op_swap;
  std::string form_note_;
  headwise::token_classifier classifier_;
  std::unique_ptr<hooked_context> context_;
  std::unique_ptr<row_store> rows_;
  // The micro-batch.
  token_batch batch_;
  std::vector<headwise::token> tokens_;
  std::vector<step_part> parts_;
};

}  // namespace headwise_llama_cpp
