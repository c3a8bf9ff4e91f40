// SPDX-License-Identifier: Apache-2.0
//
// cache_manager: the pages and the plan of one model; it opens sequences.
//
//   cache_manager<> cache(load_blueprint("model.blueprint.json"), {.rollback_horizon = 8});
//   auto text = cache.open();
//   auto step = text.try_append(tokens);           // nullopt: no memory, nothing changed
//   for each head: step->write(head, keys, values); attend(step->head(head), query, ...);
//   std::move(*step).commit();
//
// An append may take a page from config.memory; with reserved_pages == pages all were taken at
// construction. Then only a step of more tokens than config.step_tokens and any before it asks for
// memory, and heads that rank do while their tables of scores grow.
// Rows are kept per KV head and per its policy (FastGen, arXiv:2310.01801), once for the group of
// query heads that reads them. One owner thread for open, append, commit, rollback, fork and close.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/manager/sequence.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// Pages that a head takes at most at any length up to `length`.
[[nodiscard]] inline std::size_t most_pages(const policy_facts& facts, token_count length,
                                            const cache_config& config, double forever_fraction) {
  const page_layout layout{config.page_tokens};
  std::size_t pages = layout.pages_for(std::min<std::size_t>(facts.pool_rows, length));
  for (const token_count lifetime : facts.lifetimes) {
    // Until the commit a step holds the rows of its own query and those that leave with it.
    const std::size_t most =
        std::size_t{lifetime} + std::max<token_count>(1, config.rollback_horizon);
    if (lifetime == forever)
      pages += layout.pages_for(static_cast<std::size_t>(std::ceil(forever_fraction * length)));
    else if (most >= length)
      pages += layout.pages_for(length);
    else
      pages += layout.pages_for(most - 1) + 1;  // the first page may have one row left
  }
  return pages;
}

}  // namespace detail

template <class Policies = builtin_policies, row_codec Key = f16, row_codec Value = Key>
class cache_manager {
 public:
  using policies = Policies;
  using policy = typename Policies::variant;
  using sequence_type = sequence<Policies, Key, Value>;
  using step_type = append_step<Policies, Key, Value>;
  using view_type = head_view<Key, Value>;

  // Throws error where the blueprint names a policy that Policies does not hold.
  cache_manager(const blueprint& plan, const cache_config& config)
      : cache_manager(plan.shape, make_plan(plan), config) {}
  // per_head: [layers * kv_heads], layer-major. Throws error on a shape or a config that cannot be,
  // and what the memory resource throws where it refuses the reserved pages.
  cache_manager(model_shape shape, std::vector<policy> per_head, const cache_config& config)
      : shape_(checked(shape, config)),
        config_(config),
        plan_(std::move(per_head)),
        memory_(config.memory),
        pool_(
            {config.page_tokens, Key::row_bytes(shape.head_dim), Value::row_bytes(shape.head_dim)},
            config.pages, config.reserved_pages, &memory_) {
    check_plan(plan_);
  }
  cache_manager(const cache_manager&) = delete;
  cache_manager& operator=(const cache_manager&) = delete;
  ~cache_manager() {
    HEADWISE_EXPECTS(sequences_ == 0, "a cache_manager destroyed before its sequences");
  }

  // An empty sequence with this manager's plan. expected_length: what pools of heavy hitters that
  // are a fraction of the length are cut for; without it they get their cap. Throws what the memory
  // resource throws where it refuses.
  [[nodiscard]] sequence_type open(token_count expected_length = max_length) {
    return open_with(plan_, expected_length);
  }
  // The same with a plan of its own, [layers * kv_heads].
  // Throws error(shape_mismatch) on another number of policies.
  [[nodiscard]] sequence_type open(const std::vector<policy>& per_head,
                                   token_count expected_length = max_length) {
    check_plan(per_head);
    return open_with(per_head, expected_length);
  }

  // The same with the plan of a blueprint, such as profile() makes of the attention of this very
  // prompt (FastGen's own way). Throws error where it is for another shape or names a policy that
  // Policies does not hold.
  [[nodiscard]] sequence_type open(const blueprint& plan,
                                   token_count expected_length = max_length) {
    require_match(plan, shape_);
    return open(make_plan(plan), expected_length);
  }

  // What cache_config::pages must leave for a sequence of this manager's plan, opened for
  // expected_length: the pages that it takes at most, where pages are limited, while it grows to
  // `length` tokens one by one, without forks.
  // forever_fractions: [layers * kv_heads], the share of the tokens, 0 to 1, that a head keeps for
  // good (head_plan::forever_fraction) where its policy keeps some; empty: all of them. Throws
  // error on other numbers. O(heads).
  [[nodiscard]] std::size_t pages_for(token_count length,
                                      std::span<const double> forever_fractions = {},
                                      token_count expected_length = max_length) const {
    check_fractions(forever_fractions);
    std::size_t pages = 0;
    for (std::size_t i = 0; i < plan_.size(); ++i)
      pages += detail::most_pages(facts_of(plan_[i], expected_length), length, config_,
                                  forever_fractions.empty() ? 1.0 : forever_fractions[i]);
    return pages;
  }
  // How many more sequences of `length` tokens the free pages take in, whatever their tokens are:
  // what a scheduler admits by. As for pages_for; what a step needs, it asks of the sequence.
  [[nodiscard]] std::size_t sequences_that_fit(token_count length,
                                               std::span<const double> forever_fractions = {},
                                               token_count expected_length = max_length) const {
    const std::size_t each = pages_for(length, forever_fractions, expected_length);
    return each == 0 ? std::numeric_limits<std::size_t>::max() : pool_.available() / each;
  }

  [[nodiscard]] const model_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::span<const policy> plan() const noexcept { return plan_; }
  [[nodiscard]] manager_stats stats() const noexcept {
    return {memory_.held_bytes(), pool_.idle_bytes(),          pool_.pages_in_use(),
            pool_.available(),    pool_.layout().page_bytes(), sequences_};
  }

 private:
  friend struct detail::saved_access;

  [[nodiscard]] static std::vector<policy> make_plan(const blueprint& plan) {
    std::vector<policy> per_head;
    per_head.reserve(plan.heads.size());
    for (std::size_t i = 0; i < plan.heads.size(); ++i)
      per_head.push_back(
          make_policy<Policies>(plan.heads[i].policy, "blueprint head " + std::to_string(i)));
    return per_head;
  }
  [[nodiscard]] static const model_shape& checked(const model_shape& shape,
                                                  const cache_config& config) {
    validate(shape);
    if (config.page_tokens == 0)
      raise(error_code::invalid_argument, "cache_config.page_tokens", "0", "at least 1");
    if (config.reserved_pages > config.pages)
      raise(error_code::invalid_argument, "cache_config.reserved_pages",
            std::to_string(config.reserved_pages),
            "at most cache_config.pages = " + std::to_string(config.pages));
    if (config.memory == nullptr)
      raise(error_code::invalid_argument, "cache_config.memory", "null", "a memory resource");
    check_sizes(shape, config);
    return shape;
  }
  // No byte count may wrap, or an allocation would be smaller than what is written into it.
  static void check_sizes(const model_shape& shape, const cache_config& config) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
    const auto at_most = [](const char* field, std::size_t got, std::size_t limit) {
      if (got > limit)
        raise(error_code::out_of_range, field, std::to_string(got),
              "at most " + std::to_string(limit) + ", which fills the address space");
    };
    page_layout layout{1, Key::row_bytes(shape.head_dim), Value::row_bytes(shape.head_dim)};
    at_most("cache_config.page_tokens", config.page_tokens, most / layout.page_bytes());
    layout.page_tokens = config.page_tokens;
    at_most("cache_config.step_tokens", config.step_tokens, most / sizeof(token));
    at_most("cache_config.reserved_pages", config.reserved_pages, most / layout.page_bytes());
  }
  void check_plan(const std::vector<policy>& per_head) const {
    if (per_head.size() == shape_.heads()) return;
    const std::size_t layer = per_head.size() / shape_.kv_heads;
    raise(error_code::shape_mismatch, "per_head plan",
          std::to_string(per_head.size()) + " policies" +
              (layer < shape_.layers ? " (layer " + std::to_string(layer) + " lacks some)" : ""),
          std::to_string(shape_.layers) + " layers x " + std::to_string(shape_.kv_heads) +
              " KV heads = " + std::to_string(shape_.heads()));
  }
  void check_fractions(std::span<const double> forever_fractions) const {
    if (!forever_fractions.empty() && forever_fractions.size() != plan_.size())
      raise(error_code::shape_mismatch, "forever_fractions",
            std::to_string(forever_fractions.size()),
            std::to_string(plan_.size()) + ", one a head");
    for (std::size_t i = 0; i < forever_fractions.size(); ++i)
      if (!(forever_fractions[i] >= 0.0 && forever_fractions[i] <= 1.0))
        raise(error_code::out_of_range, "forever_fractions[" + std::to_string(i) + "]",
              std::to_string(forever_fractions[i]), "from 0 to 1");
  }
  [[nodiscard]] sequence_type open_with(const std::vector<policy>& per_head,
                                        token_count expected_length) {
    return sequence_type(detail::make_state<Policies>(&memory_, &sequences_, shape_,
                                                      std::span<const policy>(per_head),
                                                      expected_length, config_, pool_));
  }

  model_shape shape_;
  cache_config config_;
  std::vector<policy> plan_;
  detail::counting_resource memory_;
  detail::page_pool pool_;
  std::size_t sequences_ = 0;
};

HEADWISE_NAMESPACE_END
