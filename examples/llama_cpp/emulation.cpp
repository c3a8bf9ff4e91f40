// SPDX-License-Identifier: Apache-2.0

#include "emulation.hpp"

#include <algorithm>
#include <limits>

#include "model_support.hpp"
#include "vocabulary.hpp"

#include "headwise/policy/policy_list.hpp"

namespace headwise_llama_cpp {
namespace {

using headwise::error_code;
using headwise::position;

headwise::token_classifier checked_classifier(llama_model& model, const headwise::blueprint& plan,
                                              const emulation_options& options) {
  require_sizes("emulation_options", {options.capacity, options.micro_batch});
  require_supported(model, options.context);
  return classifier_for(plan, model);
}

std::vector<headwise::builtin_policies::variant> make_plan(const headwise::blueprint& plan) {
  std::vector<headwise::builtin_policies::variant> policies;
  for (std::size_t i = 0; i < plan.heads.size(); ++i) {
    const std::string place = "blueprint head " + std::to_string(i);
    policies.push_back(
        headwise::make_policy<headwise::builtin_policies>(plan.heads[i].policy, place));
    if (headwise::facts_of(policies.back()).pool_rows != 0)
      headwise::raise(error_code::unsupported, place, "heavy hitters",
                      "a policy that depends on the token alone");
  }
  return policies;
}

}  // namespace

emulation::emulation(llama_model& model, const headwise::blueprint& plan,
                     const emulation_options& options)
    : shape_(shape_of(model)),
      classifier_(checked_classifier(model, plan, options)),
      plan_(make_plan(plan)),
      lifetimes_(plan_.size() * options.capacity),
      context_(model, options.context, options.capacity, options.micro_batch,
               attention_stage::logits,
               [this](const watched_context::layer_view& logits) { hide(logits); }) {}

std::span<const float> emulation::feed(std::span<const llama_token> ids) {
  headwise::rows<const float> last;
  run_all(ids, false, [&](position, headwise::rows<const float> logits) { last = logits; });
  return {last.data, last.width};
}

void emulation::feed(std::span<const llama_token> ids, const logits_visitor& visit) {
  run_all(ids, true, visit);
}

void emulation::run_all(std::span<const llama_token> ids, bool all_logits,
                        const logits_visitor& visit) {
  // Takes back what micro-batches before the one that failed appended.
  struct length_guard {
    watched_context* context;
    headwise::token_count length;
    ~length_guard() {
      if (context != nullptr) context->shorten(length);
    }
  } guard{&context_, length()};
  while (!ids.empty()) {
    const auto some = ids.first(std::min(ids.size(), context_.micro_batch()));
    ids = ids.subspan(some.size());
    const position first = length();
    visit(first, run(some, all_logits));
  }
  guard.context = nullptr;
}

headwise::rows<const float> emulation::run(std::span<const llama_token> ids, bool all_logits) {
  if (ids.size() <= context_.capacity() - length()) set_lifetimes(ids);  // else run() refuses
  return context_.run(ids, all_logits);
}

void emulation::set_lifetimes(std::span<const llama_token> ids) {
  const std::vector<headwise::token> tokens = classifier_.tokens(ids, length());
  for (std::size_t head = 0; head < plan_.size(); ++head)
    for (const headwise::token& t : tokens)
      lifetimes_[head * context_.capacity() + t.pos] = headwise::lifetime_of(plan_[head], t);
}

void emulation::hide(const watched_context::layer_view& logits) const {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  const auto cells = context_.cell_positions();
  for (std::uint32_t h = 0; h < shape_.query_heads; ++h) {
    const std::size_t head = logits.layer * shape_.kv_heads + h / shape_.group_size();
    const headwise::token_count* const lifetimes = lifetimes_.data() + head * context_.capacity();
    const headwise::rows<float> all = logits.head(h);
    for (std::size_t t = 0; t < all.count; ++t) {
      const auto query = static_cast<position>(length() + t);
      const std::span<float> row = all[t];
      for (std::size_t c = 0; c < row.size(); ++c)
        if (cells[c] <= query && !headwise::sees(query, cells[c], lifetimes[cells[c]]))
          row[c] = nothing;  // later and empty cells are hidden by llama.cpp's mask
    }
  }
}

}  // namespace headwise_llama_cpp
