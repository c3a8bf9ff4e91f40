// SPDX-License-Identifier: Apache-2.0

#include "self_check.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "attention_reference.hpp"
#include "model_support.hpp"

#include "headwise/core/error.hpp"

namespace headwise_llama_cpp {
namespace {

constexpr std::size_t prompt_tokens = 20, single_tokens = 4;  // two blocks of queries, and more
constexpr std::size_t all_tokens = prompt_tokens + single_tokens;
// Of a layer's output, both as root mean squares. What llama.cpp rounds beside rows and queries,
// its sums, costs a thousandth or less; a scale that is 2 % off, six and more in some layer. Ours,
// with rows of 32 bits, adds up some hundreds of products in 32: a millionth, and ten times that
// where logits go to a hundred.
constexpr double tolerance_of_16_bits = 0.004, tolerance_of_32_bits = 1e-4;
// Of the logits' range: that what the layers gave goes where stock's goes. What 16 bits round in
// all layers costs a good part of it.
constexpr float tolerance_of_logits = 0.03F;

// A few ids from all over the vocabulary; what they say does not matter.
std::vector<llama_token> some_ids(const llama_model& model) {
  const std::size_t size = vocabulary_size(model);
  std::vector<llama_token> ids;
  for (std::size_t i = 0; i < all_tokens; ++i)
    ids.push_back(static_cast<llama_token>((1 + i * (size / all_tokens + 1) + i * i) % size));
  return ids;
}

// Runs all tokens, the first ones at once where the context can; logits: of each run, [runs,
// vocabulary]. rows: whose steps are opened, nullptr for stock, which keeps its cells.
class check_run {
 public:
  check_run(hooked_context& context, std::vector<llama_token> ids, std::size_t vocabulary)
      : context_(context), ids_(std::move(ids)), vocabulary_(vocabulary), batch_(prompt_tokens) {}

  // Empty, or what went wrong.
  [[nodiscard]] std::string run(row_store* rows, std::vector<float>& logits) {
    context_.empty_cells();
    for (std::size_t first = 0; first < all_tokens;) {
      const std::size_t count =
          first < prompt_tokens ? std::min(prompt_tokens - first, at_once()) : 1;
      if (std::string problem = run_some(rows, first, count); !problem.empty()) return problem;
      logits.insert(logits.end(), context_.logits(), context_.logits() + vocabulary_);
      if (rows != nullptr) context_.empty_cells();
      first += count;
    }
    return {};
  }

 private:
  [[nodiscard]] std::size_t at_once() const { return llama_n_ubatch(context_.get()); }
  [[nodiscard]] std::string run_some(row_store* rows, std::size_t first, std::size_t count) {
    std::vector<headwise::token> tokens;
    batch_.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      tokens.push_back({static_cast<headwise::position>(i), ids_[i]});
      batch_.add(ids_[i], static_cast<llama_pos>(i), 0, i + 1 == first + count);
    }
    const step_part part{0, tokens};
    if (rows != nullptr && !rows->try_begin({&part, 1})) return "no memory for a few rows";
    const char* const problem = context_.run(batch_);
    if (rows != nullptr && problem == nullptr) rows->commit();
    if (rows != nullptr && problem != nullptr) rows->cancel();
    return problem == nullptr ? std::string() : problem;
  }

  hooked_context& context_;
  std::vector<llama_token> ids_;
  std::size_t vocabulary_;
  token_batch batch_;
};

// Of the layers that have been seen.
void require_layers(const std::vector<attention_facts>& facts, const headwise::model_shape& shape) {
  for (std::uint32_t layer = 0; layer < facts.size(); ++layer)
    if (facts[layer].query_heads != 0) require_heads(layer, facts[layer], shape);
}

std::string compare(const std::vector<float>& stock, const std::vector<float>& ours) {
  const auto [least, most] = std::minmax_element(stock.begin(), stock.end());
  const float allowed = tolerance_of_logits * (*most - *least);
  float apart = 0.0F;
  for (std::size_t i = 0; i < stock.size() && !std::isnan(apart); ++i) {
    const float difference = std::abs(stock[i] - ours[i]);
    if (!(difference <= apart)) apart = difference;
  }
  if (apart <= allowed) return {};
  return "its logits are " + std::to_string(apart) + " from those of stock llama.cpp, more than " +
         std::to_string(allowed);
}

// Empty, or the first layer whose attention is not what it should be.
std::string judge(const char* whose, std::span<const double> differences, double tolerance) {
  for (std::size_t layer = 0; layer < differences.size(); ++layer)
    if (!(differences[layer] <= tolerance))
      return std::string(whose) + " attention in layer " + std::to_string(layer) + " is " +
             std::to_string(differences[layer]) + " of its size from that of its rows, more than " +
             std::to_string(tolerance);
  return {};
}

std::vector<float> scales_of(const std::vector<attention_facts>& facts) {
  std::vector<float> scales;
  for (const attention_facts& layer : facts) scales.push_back(layer.scale);
  return scales;
}

}  // namespace

row_store_sizes self_check_sizes(std::size_t workers) noexcept {
  return {1, all_tokens, prompt_tokens, workers, nullptr};
}

std::string find_difference(const llama_model& model, hooked_context& context, graph_form form,
                            row_store& rows) {
  check_run check(context, some_ids(model), vocabulary_size(model));
  graph_hook& hook = context.hook();
  const auto run = [&](graph_form as, row_store* store, attention_reference& reference,
                       std::vector<float>& logits) {
    hook.use(as, &reference);
    std::string problem = check.run(store, logits);
    hook.use(form, nullptr);
    return problem;
  };
  std::vector<float> stock, ours;
  attention_reference theirs(rows.shape(), {}, nullptr, all_tokens);
  const std::string obstacle = run(graph_form::overwrite, nullptr, theirs, stock);
  require_layers(hook.facts(), rows.shape());
  if (!obstacle.empty())
    headwise::raise(headwise::error_code::unsupported, "the model's graph", obstacle,
                    "attention as the adapter takes it over");
  attention_reference own(rows.shape(), scales_of(hook.facts()), &rows, all_tokens);
  if (std::string problem = run(form, &rows, own, ours); !problem.empty()) return problem;
  if (std::string found = judge("llama.cpp's", theirs.differences(), tolerance_of_16_bits);
      !found.empty())
    return found;
  if (std::string found = judge("its", own.differences(), tolerance_of_32_bits); !found.empty())
    return found;
  return compare(stock, ours);
}

}  // namespace headwise_llama_cpp
