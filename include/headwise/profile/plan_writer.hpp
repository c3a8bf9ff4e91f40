// SPDX-License-Identifier: Apache-2.0
//
// From a measurement to a blueprint: judges every candidate for every head, or for a layer at a
// time, takes the cheapest that passes (classify.hpp), and writes down what was measured of all of
// them: FastGen's profiling step (arXiv:2310.01801).
//
// O(heads * candidates), and for those that learn ids what learn_ids.hpp says. Pure: any number of
// threads may write plans of one measurement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headwise/profile/budget.hpp"
#include "headwise/profile/candidate.hpp"
#include "headwise/profile/learn_ids.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

[[nodiscard]] inline policy_spec with_ids(const policy_spec& policy,
                                          const std::vector<std::int32_t>& ids) {
  if (ids.empty()) return policy;
  policy_spec result =
      normalized({"union", {}, {}, {policy, make_spec(special_tokens(token_classes::none, ids))}});
  std::sort(result.ids.begin(), result.ids.end());
  for (policy_spec& part : result.parts) std::sort(part.ids.begin(), part.ids.end());
  return result;
}

// One name for each distinct policy: the candidate's, and with ids of its own the head's too.
class policy_names {
 public:
  [[nodiscard]] std::string name(const policy_spec& policy, const std::string& candidate,
                                 bool with_ids, head_id head) {
    const auto known = std::find_if(names_.begin(), names_.end(),
                                    [&](const auto& entry) { return entry.first == policy; });
    if (known != names_.end()) return known->second;
    std::string fresh = candidate;
    if (with_ids) fresh += "@" + std::to_string(head.layer) + "." + std::to_string(head.kv_head);
    names_.emplace_back(policy, fresh);
    return fresh;
  }

 private:
  std::vector<std::pair<policy_spec, std::string>> names_;
};

[[nodiscard]] inline std::string judged_name(const candidate& judged,
                                             const judged_candidate& result) {
  return result.ids.empty() ? judged.name
                            : judged.name + "+ids(" + std::to_string(result.ids.size()) + ")";
}

class plan_writer {
 public:
  plan_writer(const measurement& sums, const std::vector<candidate>& candidates,
              const model_shape& shape, token_count length, const classify_options& options)
      : sums_(sums),
        candidates_(candidates),
        shape_(shape),
        length_(length),
        options_(options),
        required_(required_recovery(options)) {}

  [[nodiscard]] std::vector<head_plan> write() {
    std::vector<judged_scope> scopes;
    const bool by_layer = options_.granularity == plan_granularity::layer;
    const std::uint32_t step = by_layer ? shape_.kv_heads : 1;
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer)
      for (std::uint32_t head = 0; head < shape_.kv_heads; head += step)
        scopes.push_back(judge({layer, head, step}));
    const std::vector<std::size_t> choices = choose(scopes);
    std::vector<head_plan> plans;
    for (std::size_t s = 0; s < scopes.size(); ++s) append(scopes[s], choices[s], plans);
    return plans;
  }

 private:
  // [KV heads][candidates]
  using judged_heads = std::vector<std::vector<judged_candidate>>;
  struct judged_scope {
    head_scope scope;
    std::vector<judged_heads> levels;  // by how much recovery learners were to reach
  };

  // Without a budget what is required is all that counts; with one, learners are also tried on
  // their way to more.
  [[nodiscard]] std::vector<double> levels() const {
    std::vector<double> wanted{required_};
    if (options_.budget)
      for (const double more : {0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0})
        if (more > required_) wanted.push_back(more);
    return wanted;
  }

  [[nodiscard]] judged_scope judge(head_scope scope) const {
    const std::vector<double> wanted = levels();
    judged_scope judged{scope, std::vector<judged_heads>(wanted.size())};
    std::size_t learner = 0;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      id_search search(sums_, shape_, scope, c, learner, options_.aggregation);
      if (candidates_[c].learns_ids) ++learner;
      for (std::size_t level = 0; level < wanted.size(); ++level) {
        if (candidates_[c].learns_ids) search.run(wanted[level], options_.max_learned_ids);
        judged.levels[level].resize(scope.kv_heads);
        for (std::uint32_t head = 0; head < scope.kv_heads; ++head)
          judged.levels[level][head].push_back(search.result(head));
      }
    }
    return judged;
  }

  // Level by level, each candidate.
  [[nodiscard]] std::vector<offer> offers_of(const judged_scope& judged) const {
    std::vector<offer> offers;
    for (const judged_heads& heads : judged.levels)
      for (std::size_t c = 0; c < candidates_.size(); ++c) {
        offer all{1.0, 0.0, 0.0};
        for (const std::vector<judged_candidate>& head : heads) {
          all.recovery = std::min(all.recovery, head[c].recovery);
          all.rows += head[c].resident_rows;
          all.harm += head[c].harm;
        }
        offers.push_back(all);
      }
    return offers;
  }

  [[nodiscard]] double rows_of_budget() const {
    const double share = *options_.budget;
    if (!(share > 0.0 && share <= 1.0))
      raise(error_code::invalid_argument, "budget", std::to_string(share),
            "more than 0 and at most 1, as a share of a full cache");
    return share * length_ * static_cast<double>(shape_.heads());
  }
  // The index of one offer for each scope.
  [[nodiscard]] std::vector<std::size_t> choose(const std::vector<judged_scope>& scopes) const {
    std::vector<std::vector<offer>> offers;
    for (const judged_scope& judged : scopes) offers.push_back(offers_of(judged));
    if (options_.budget) return least_harm(offers, required_, rows_of_budget());
    return cheapest_of_all(offers, required_);
  }

  void append(const judged_scope& judged, std::size_t choice, std::vector<head_plan>& plans) {
    const judged_heads& heads = judged.levels[choice / candidates_.size()];
    for (std::uint32_t head = 0; head < judged.scope.kv_heads; ++head)
      plans.push_back(make_head_plan({judged.scope.layer, judged.scope.first_kv_head + head},
                                     heads[head], choice % candidates_.size()));
  }

  [[nodiscard]] head_plan make_head_plan(head_id head, const std::vector<judged_candidate>& judged,
                                         std::size_t choice) {
    const judged_candidate& chosen = judged[choice];
    head_plan plan;
    plan.policy = with_ids(candidates_[choice].policy, chosen.ids);
    plan.name = names_.name(plan.policy, judged_name(candidates_[choice], chosen),
                            !chosen.ids.empty(), head);
    plan.recovery = chosen.recovery;
    plan.resident_fraction = chosen.resident_rows / length_;
    plan.forever_fraction = chosen.forever_fraction;
    for (std::size_t c = 0; c < judged.size(); ++c)
      plan.candidates.push_back({judged_name(candidates_[c], judged[c]), judged[c].recovery,
                                 judged[c].resident_rows / length_});
    return plan;
  }

  const measurement& sums_;
  const std::vector<candidate>& candidates_;
  model_shape shape_;
  token_count length_;
  classify_options options_;
  double required_;
  policy_names names_;
};

[[nodiscard]] inline token_classes classes_named(const policy_spec& spec) {
  const auto own = spec.params.find("classes");
  token_classes all = token_classes::none;
  if (spec.kind == special_tokens::kind && own != spec.params.end())
    all = static_cast<token_classes>(own->second);
  for (const policy_spec& part : spec.parts) all |= classes_named(part);
  return all;
}

// The ladder speaks of special tokens and punctuation whether or not the rules do. Where a chosen
// policy does and the rules don't, the plan says so in so many words: a class without ids.
inline void declare_named_classes(blueprint& plan) {
  token_classes named = token_classes::none;
  for (const head_plan& head : plan.heads) named |= classes_named(head.policy);
  for (const token_class_rule& rule : plan.tokens.classes)
    named = named & static_cast<token_classes>(~static_cast<std::uint32_t>(rule.bit));
  if (any(named & token_classes::special))
    plan.tokens.classes.push_back({"special", token_classes::special, {}});
  if (any(named & token_classes::punctuation))
    plan.tokens.classes.push_back({"punctuation", token_classes::punctuation, {}});
}

}  // namespace detail

// sums: of at least one prompt, over these candidates, global among them. length: the
// stated one. Throws error(missing) where a head has no calibration query.
[[nodiscard]] inline blueprint write_plan(const measurement& sums,
                                          const std::vector<candidate>& candidates,
                                          const model_shape& shape, token_count length,
                                          const classify_options& options) {
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer)
    for (std::uint32_t head = 0; head < shape.query_heads; ++head)
      if (sums.table.queries(layer, head) == 0)
        raise(error_code::missing,
              "layer " + std::to_string(layer) + " query head " + std::to_string(head),
              "no calibration query", "at least one query that is not skipped");
  blueprint result;
  result.shape = shape;
  result.heads = detail::plan_writer(sums, candidates, shape, length, options).write();
  result.origin.recovery_target = options.recovery_target;
  result.origin.budget = options.budget;
  result.origin.aggregation = options.aggregation;
  result.origin.criterion = options.criterion;
  result.origin.granularity = options.granularity;
  result.origin.prompts = sums.table.prompts();
  result.origin.queries = sums.table.queries(0, 0);
  result.origin.length = length;
  result.origin.tool = "headwise " HEADWISE_VERSION_STRING;
  return result;
}

HEADWISE_NAMESPACE_END
