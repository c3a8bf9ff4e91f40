// SPDX-License-Identifier: Apache-2.0

#include "self_check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "headwise/core/error.hpp"

namespace headwise_llama_cpp {
namespace {

constexpr std::size_t prompt_tokens = 20, single_tokens = 4;  // two blocks of queries, and more
constexpr std::size_t all_tokens = prompt_tokens + single_tokens;
// Of the logits' range. llama.cpp rounds its rows and queries to 16 bits, which costs a thousandth
// or so; a wrong head, layer, position or scale costs a good part of the range.
constexpr float tolerance = 0.03F;

// A few ids from all over the vocabulary; what they say does not matter.
std::vector<llama_token> some_ids(const llama_model& model) {
  const auto size = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(&model)));
  std::vector<llama_token> ids;
  for (std::size_t i = 0; i < all_tokens; ++i)
    ids.push_back(static_cast<llama_token>((1 + i * (size / all_tokens + 1) + i * i) % size));
  return ids;
}

// Runs all tokens, the first ones at once; logits: of each run, [runs, vocabulary]. rows: whose
// steps are opened, nullptr for stock.
class check_run {
 public:
  check_run(hooked_context& context, std::vector<llama_token> ids, std::size_t vocabulary)
      : context_(context), ids_(std::move(ids)), vocabulary_(vocabulary), batch_(prompt_tokens) {}

  // Empty, or what went wrong.
  [[nodiscard]] std::string run(row_store* rows, std::vector<float>& logits) {
    context_.empty_cells();
    for (std::size_t first = 0; first < all_tokens;) {
      const std::size_t count = first == 0 ? prompt_tokens : 1;
      if (std::string problem = run_some(rows, first, count); !problem.empty()) return problem;
      logits.insert(logits.end(), context_.logits(), context_.logits() + vocabulary_);
      if (rows != nullptr) context_.empty_cells();
      first += count;
    }
    return {};
  }

 private:
  [[nodiscard]] std::string run_some(row_store* rows, std::size_t first, std::size_t count) {
    std::vector<headwise::token> tokens;
    batch_.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      tokens.push_back({static_cast<headwise::position>(i), ids_[i]});
      batch_.add(ids_[i], static_cast<llama_pos>(i), 0, i + 1 == first + count);
    }
    const step_part part{0, tokens};
    if (rows != nullptr && !rows->try_begin({&part, 1})) return "no memory for a few rows";
    std::string problem = context_.run(batch_);
    if (rows == nullptr) return problem;
    if (problem.empty())
      rows->commit();
    else
      rows->cancel();
    return problem;
  }

  hooked_context& context_;
  std::vector<llama_token> ids_;
  std::size_t vocabulary_;
  token_batch batch_;
};

std::string describe(const attention_facts& facts) {
  return std::to_string(facts.query_heads) + " query heads, " + std::to_string(facts.kv_heads) +
         " KV heads, head_dim " + std::to_string(facts.head_dim);
}

void require_layers(const std::vector<attention_facts>& facts, const headwise::model_shape& shape) {
  for (std::size_t layer = 0; layer < facts.size(); ++layer) {
    const attention_facts expected{shape.query_heads, shape.kv_heads, shape.head_dim,
                                   facts[layer].scale};
    if (facts[layer] == expected) continue;
    headwise::raise(headwise::error_code::unsupported, "layer " + std::to_string(layer),
                    facts[layer].query_heads == 0 ? "no attention over a cache of its own"
                                                  : describe(facts[layer]),
                    describe(expected) + ", in every layer");
  }
}

std::string compare(const std::vector<float>& stock, const std::vector<float>& ours) {
  const auto [least, most] = std::minmax_element(stock.begin(), stock.end());
  const float allowed = tolerance * (*most - *least);
  float apart = 0.0F;
  for (std::size_t i = 0; i < stock.size(); ++i) {
    const float difference = std::abs(stock[i] - ours[i]);
    if (!(difference <= apart)) apart = difference;  // a NaN counts
  }
  if (apart <= allowed) return {};
  return "its logits are " + std::to_string(apart) + " from those of stock llama.cpp, more than " +
         std::to_string(allowed);
}

}  // namespace

row_store_sizes self_check_sizes(std::size_t workers) noexcept {
  return {1, all_tokens, prompt_tokens, workers};
}

std::string find_difference(const llama_model& model, hooked_context& context, graph_form form,
                            row_store& rows) {
  const auto vocabulary =
      static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(&model)));
  check_run check(context, some_ids(model), vocabulary);
  std::vector<float> stock, ours;
  context.hook().use(graph_form::stock, nullptr);
  if (const std::string problem = check.run(nullptr, stock); !problem.empty())
    headwise::raise(headwise::error_code::unsupported, "the model's graph", problem,
                    "attention as the adapter takes it over");
  require_layers(context.hook().facts(), rows.shape());

  context.hook().use(form, &rows);
  std::string problem = check.run(&rows, ours);
  context.hook().use(form, nullptr);
  return problem.empty() ? compare(stock, ours) : problem;
}

}  // namespace headwise_llama_cpp
