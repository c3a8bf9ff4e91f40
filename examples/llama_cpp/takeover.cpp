// SPDX-License-Identifier: Apache-2.0

#include "takeover.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "model_support.hpp"
#include "self_check.hpp"
#include "vocabulary.hpp"

#include "headwise/core/error.hpp"

namespace headwise_llama_cpp {
namespace {

using headwise::error_code;

const takeover_options& checked(const takeover_options& options) {
  require_sizes("takeover_options", {options.capacity, options.micro_batch, options.sequences});
  return options;
}

headwise::token_classifier checked_classifier(llama_model& model, const headwise::blueprint& plan,
                                              const takeover_options& options) {
  require_supported(model, options.context);
  return classifier_for(plan, model);
}

// Does what takes memory for a sequence's tables.
template <class Act>
void with_memory(std::size_t sequence, const Act& act) {
  try {
    act();
  } catch (const std::bad_alloc&) {
    headwise::raise(error_code::out_of_memory, "sequence " + std::to_string(sequence),
                    "no memory for its tables of pages", "memory from the memory resource");
  }
}

// Makes a sequence again what it was, unless it is told that all went well.
class mark_guard {
 public:
  mark_guard(row_store& rows, std::size_t sequence) : rows_(&rows), sequence_(sequence) {
    with_memory(sequence, [&] { rows.mark(sequence); });
  }
  mark_guard(const mark_guard&) = delete;
  mark_guard& operator=(const mark_guard&) = delete;
  ~mark_guard() {
    if (rows_ != nullptr) rows_->go_back(sequence_);
  }
  void drop() noexcept { std::exchange(rows_, nullptr)->drop_mark(sequence_); }

 private:
  row_store* rows_;
  std::size_t sequence_;
};

}  // namespace

// The micro-batch that is being put together and run. Whatever happens, it is gone in the end, and
// nothing stays but steps that were committed.
class takeover::open_batch {
 public:
  explicit open_batch(takeover& owner) noexcept : owner_(owner) {}
  open_batch(const open_batch&) = delete;
  open_batch& operator=(const open_batch&) = delete;
  ~open_batch() {
    owner_.context_->empty_cells();
    owner_.rows_->cancel();
    owner_.batch_.clear();
    owner_.tokens_.clear();
    owner_.parts_.clear();
  }

 private:
  takeover& owner_;
};

takeover::takeover(llama_model& model, const headwise::blueprint& plan,
                   const takeover_options& options)
    : options_(checked(options)),
      vocabulary_(vocabulary_size(model)),
      workers_(static_cast<std::size_t>(
          std::max({1, options.context.n_threads, options.context.n_threads_batch}))),
      classifier_(checked_classifier(model, plan, options)),
      context_(make_checked_context(model)),
      rows_(make_row_store(
          options.rows, plan, options.cache,
          {options.sequences, options.capacity, options.micro_batch, workers_, options.scratch})),
      batch_(options.micro_batch) {
  tokens_.reserve(options.micro_batch);
  parts_.reserve(std::min(options.sequences, options.micro_batch));
  context_->hook().use(form_, rows_.get());
}

std::unique_ptr<hooked_context> takeover::make_checked_context(llama_model& model) {
  const auto attempt = [&](graph_form form, std::string& difference) {
    auto context = std::make_unique<hooked_context>(model, options_.context, options_.micro_batch,
                                                    options_.sequences);
    const auto rows = make_row_store(
        row_type::f32,
        headwise::uniform_blueprint(shape_of(model), headwise::make_spec(headwise::global{})), {},
        self_check_sizes(workers_));
    difference = find_difference(model, *context, form, *rows);
    if (context->hook().has_two_rotations())
      require_rotation_of(model, llama_n_ctx(context->get()), options_.capacity);
    form_ = form;
    return context;
  };
  std::string difference;
  if (options_.form != takeover_form::overwrite) {
    auto context = attempt(graph_form::op_swap, difference);
    if (difference.empty()) return context;
    form_note_ = "op_swap is not used: " + difference;
  }
  if (options_.form != takeover_form::op_swap) {
    auto context = attempt(graph_form::overwrite, difference);
    if (difference.empty()) return context;
  }
  headwise::raise(error_code::unsupported, "takeover of this model by this llama.cpp", difference,
                  "the logits of stock llama.cpp");
}

void takeover::check_sequence(std::size_t sequence) const {
  if (sequence >= options_.sequences)
    headwise::raise(error_code::out_of_range, "sequence", std::to_string(sequence),
                    "below " + std::to_string(options_.sequences));
}

void takeover::check_ids(std::size_t sequence, std::span<const llama_token> ids) const {
  check_sequence(sequence);
  const headwise::token_count length = rows_->length(sequence);
  if (ids.size() > options_.capacity - length)
    headwise::raise(error_code::out_of_range, "sequence " + std::to_string(sequence),
                    std::to_string(ids.size()) + " tokens more than " + std::to_string(length),
                    "at most " + std::to_string(options_.capacity) + " in all");
  for (const llama_token id : ids)
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary_)
      headwise::raise(error_code::out_of_range, "token id", std::to_string(id),
                      "an id below " + std::to_string(vocabulary_));
}

std::span<const float> takeover::feed(std::size_t sequence, std::span<const llama_token> ids) {
  check_ids(sequence, ids);
  if (ids.empty()) return {};
  run_all(sequence, ids, wanted::last, [](headwise::position, std::size_t) {});
  return {context_->logits(), vocabulary_};
}

void takeover::feed(std::size_t sequence, std::span<const llama_token> ids,
                    const logits_visitor& visit) {
  check_ids(sequence, ids);
  run_all(sequence, ids, wanted::all, [&](headwise::position first, std::size_t count) {
    visit(first, {context_->logits(), count, vocabulary_});
  });
}

void takeover::run_all(std::size_t sequence, std::span<const llama_token> ids, wanted logits,
                       const std::function<void(headwise::position, std::size_t)>& visit) {
  // A micro-batch that fails is cancelled; what those before it did must be taken back.
  std::optional<mark_guard> before;
  if (ids.size() > options_.micro_batch) before.emplace(*rows_, sequence);
  while (!ids.empty()) {
    const auto some = ids.first(std::min(ids.size(), options_.micro_batch));
    ids = ids.subspan(some.size());
    const headwise::position first = rows_->length(sequence);
    const open_batch open(*this);
    add(sequence, some, logits);
    compute();
    visit(first, some.size());
    rows_->commit();
  }
  if (before) before->drop();
}

headwise::rows<const float> takeover::step(std::span<const next_token> next) {
  if (next.size() > options_.micro_batch)
    headwise::raise(error_code::out_of_range, "step", std::to_string(next.size()) + " tokens",
                    "at most micro_batch = " + std::to_string(options_.micro_batch));
  for (const next_token& n : next) {
    check_ids(n.sequence, {&n.id, 1});
    const auto same = [&](const next_token& other) { return other.sequence == n.sequence; };
    if (std::count_if(next.begin(), next.end(), same) != 1)
      headwise::raise(error_code::duplicate, "step",
                      "sequence " + std::to_string(n.sequence) + " again", "each sequence once");
  }
  if (next.empty()) return {};
  const open_batch open(*this);
  for (const next_token& n : next) add(n.sequence, {&n.id, 1}, wanted::last);
  compute();
  rows_->commit();
  return {context_->logits(), next.size(), vocabulary_};
}

void takeover::add(std::size_t sequence, std::span<const llama_token> ids, wanted logits) {
  const headwise::position first = rows_->length(sequence);
  const std::size_t begin = tokens_.size();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto position = static_cast<headwise::position>(first + i);
    tokens_.push_back(classifier_.classify(ids[i], position));
    batch_.add(ids[i], static_cast<llama_pos>(position), static_cast<llama_seq_id>(sequence),
               logits == wanted::all || i + 1 == ids.size());
  }
  parts_.push_back({sequence, {tokens_.data() + begin, ids.size()}});
}

void takeover::compute() {
  const auto place = [&] {
    return "sequence " + std::to_string(parts_.front().sequence) + " at position " +
           std::to_string(tokens_.front().pos);
  };
  if (!rows_->try_begin(parts_))
    headwise::raise(error_code::out_of_memory, place(),
                    "no memory for " + std::to_string(tokens_.size()) + " tokens",
                    "pages from the memory resource, within cache_config.pages");
  if (const char* const problem = context_->run(batch_))
    headwise::raise(error_code::unsupported, place(), problem, "a whole run of the model");
}

headwise::token_count takeover::length(std::size_t sequence) const {
  check_sequence(sequence);
  return rows_->length(sequence);
}

headwise::cache_stats takeover::stats(std::size_t sequence) const {
  check_sequence(sequence);
  return rows_->stats(sequence);
}

bool takeover::try_rollback(std::size_t sequence, headwise::token_count tokens) {
  check_sequence(sequence);
  return rows_->try_rollback(sequence, tokens);
}

void takeover::clear(std::size_t sequence) {
  check_sequence(sequence);
  with_memory(sequence, [&] { rows_->clear(sequence); });
}

void takeover::fork(std::size_t from, std::size_t to) {
  check_sequence(from);
  check_sequence(to);
  if (from != to) with_memory(to, [&] { rows_->fork(from, to); });
}

}  // namespace headwise_llama_cpp
