// SPDX-License-Identifier: Apache-2.0
//
// The blueprint: one policy for every head of a model, the token rules that the policies speak of,
// the model that it was made for, where it came from and what was measured (FastGen's profile,
// arXiv:2310.01801). Plain data; the file form is io/blueprint_json.hpp.
//
// head(), index() and require_match() O(1), uniform_blueprint() O(heads), make_classifier()
// O(vocab_size + ids). Const means const: any number of threads may read one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headwise/core/token_classifier.hpp"
#include "headwise/policy/spec.hpp"

HEADWISE_NAMESPACE_BEGIN

// What tells one model and tokenizer from another. Empty strings and 0 mean "not known" and match
// anything.
struct model_fingerprint {
  std::string name;
  std::uint32_t vocab_size = 0;
  std::string tokenizer;  // hash of the vocabulary, hexadecimal
  friend bool operator==(const model_fingerprint&, const model_fingerprint&) = default;
};

// A named token class: its bit, its ids and how often it occurs. The names "sink", "special" and
// "punctuation" have the bits of token_classes; further names take the user bits from
// first_user_class up, in order. "sink" has no ids: it is the first sink_count positions.
struct token_class_rule {
  std::string name;
  token_classes bit = token_classes::none;
  std::vector<std::int32_t> ids;  // sorted
  friend bool operator==(const token_class_rule&, const token_class_rule&) = default;
};

struct token_rules {
  token_count sink_count = 0;
  std::vector<token_class_rule> classes;  // each name and bit once
  friend bool operator==(const token_rules&, const token_rules&) = default;
};

// How the query heads of a group become one number for their KV head.
enum class group_aggregation { worst, mean, max };
// How a candidate is judged against the target T, both as means over queries: mass, kept mass >= T;
// distance, the paper's |A - A_renormalised|_1 <= 1 - T. The L1 distance of a row to its
// renormalised rest is 2 (1 - kept mass), so distance asks for kept mass >= (1 + T) / 2.
enum class recovery_criterion { mass, distance };
// Whether heads are classed one by one or a whole layer at a time.
enum class plan_granularity { head, layer };

[[nodiscard]] constexpr std::string_view to_string(group_aggregation a) noexcept {
  switch (a) {
    case group_aggregation::worst:
      return "worst";
    case group_aggregation::mean:
      return "mean";
    case group_aggregation::max:
      return "max";
  }
  return "unknown";
}
[[nodiscard]] constexpr std::string_view to_string(recovery_criterion c) noexcept {
  return c == recovery_criterion::mass ? "mass" : "distance";
}
[[nodiscard]] constexpr std::string_view to_string(plan_granularity g) noexcept {
  return g == plan_granularity::head ? "head" : "layer";
}

struct profile_source {
  std::string name;    // file name, without its folder
  std::string sha256;  // of the file's bytes, hexadecimal
  friend bool operator==(const profile_source&, const profile_source&) = default;
};

struct provenance {
  double recovery_target = 0.0;  // with a budget: what each head is owed
  group_aggregation aggregation = group_aggregation::worst;
  recovery_criterion criterion = recovery_criterion::mass;
  plan_granularity granularity = plan_granularity::head;
  std::uint64_t prompts = 0;
  std::uint64_t queries = 0;  // calibration queries of one head, over all prompts
  token_count length = 0;     // tokens at which resident_fraction is stated
  std::vector<profile_source> sources;
  std::string tool;  // "headwise 0.1.0"
  // Share of a full cache's rows at `length` that it was made to fit; nullopt: by target alone.
  std::optional<double> budget = std::nullopt;
  friend bool operator==(const provenance&, const provenance&) = default;
};

struct candidate_recovery {
  std::string name;
  double recovery = 0.0;
  double resident_fraction = 0.0;
  friend bool operator==(const candidate_recovery&, const candidate_recovery&) = default;
};

struct head_plan {
  std::string name = "global";  // of the policy, unique for each distinct policy
  policy_spec policy = make_spec(global{});
  double recovery = 1.0;           // of the group, as aggregated
  double resident_fraction = 1.0;  // expected resident rows / length, at provenance.length
  // Share of the tokens behind the sinks that never leave; nullopt: not measured.
  std::optional<double> forever_fraction = std::nullopt;
  std::vector<candidate_recovery> candidates;  // in the profiler's order: "why this class?"
  friend bool operator==(const head_plan&, const head_plan&) = default;
};

struct blueprint {
  model_shape shape;
  model_fingerprint model;
  token_rules tokens;
  provenance origin;
  std::vector<head_plan> heads;  // [layers * kv_heads], layer-major

  // id: a head of `shape` that has its plan (checked at level 1).
  [[nodiscard]] const head_plan& head(head_id id) const noexcept {
    const std::size_t at = index(id);
    HEADWISE_EXPECTS(at < heads.size(), "a head of the blueprint has no plan");
    return heads[at];
  }
  [[nodiscard]] head_plan& head(head_id id) noexcept {
    return const_cast<head_plan&>(std::as_const(*this).head(id));
  }
  // id: a head of `shape` (checked at level 1).
  [[nodiscard]] std::size_t index(head_id id) const noexcept {
    HEADWISE_EXPECTS(id.layer < shape.layers && id.kv_head < shape.kv_heads,
                     "there is no such head in the model");
    return std::size_t{id.layer} * shape.kv_heads + id.kv_head;
  }
  friend bool operator==(const blueprint&, const blueprint&) = default;
};

namespace detail {

// "special_tokens(classes 1, 2 ids)+local_window(window 64)"
[[nodiscard]] inline std::string policy_text(const policy_spec& spec) {
  std::string members, parts;
  const auto add = [&](const std::string& member) {
    members += (members.empty() ? "(" : ", ") + member;
  };
  for (const auto& [name, value] : spec.params) add(name + " " + std::to_string(value));
  if (!spec.ids.empty()) add(std::to_string(spec.ids.size()) + " ids");
  for (const policy_spec& part : spec.parts)
    parts += (parts.empty() ? "" : "+") + policy_text(part);
  return parts.empty() ? spec.kind + members + (members.empty() ? "" : ")") : parts;
}

}  // namespace detail

// Every head with one policy: the all-global baseline and other uniform plans. name: of the policy;
// empty: made of its kind and numbers. Nothing is measured of it: unless it is global, recovery and
// resident_fraction are 0, and forever_fraction is not known.
[[nodiscard]] inline blueprint uniform_blueprint(const model_shape& shape,
                                                 const policy_spec& policy, std::string name = {},
                                                 token_rules tokens = {}) {
  validate(shape);
  head_plan plan;
  plan.name = name.empty() ? detail::policy_text(policy) : std::move(name);
  plan.policy = policy;
  if (policy == make_spec(global{}))
    plan.forever_fraction = 1.0;
  else
    plan.recovery = plan.resident_fraction = 0.0;
  return {shape, {}, std::move(tokens), {}, std::vector<head_plan>(shape.heads(), plan)};
}

// Throws error(shape_mismatch) naming the field and both numbers where the blueprint was made for
// another model or tokenizer than the given one. Unknown parts of a fingerprint match anything.
inline void require_match(const blueprint& plan, const model_shape& shape,
                          const model_fingerprint& model = {}) {
  const auto same = [](const char* field, const auto& got, const auto& expected, bool known) {
    if (known && got != expected) {
      std::string got_text, expected_text;
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(got)>>) {
        got_text = std::to_string(got), expected_text = std::to_string(expected);
      } else {
        got_text = "'" + got + "'", expected_text = "'" + expected + "'";
      }
      raise(error_code::shape_mismatch, std::string("blueprint ") + field, "blueprint " + got_text,
            "model " + expected_text);
    }
  };
  same("layers", plan.shape.layers, shape.layers, true);
  same("query_heads", plan.shape.query_heads, shape.query_heads, true);
  same("kv_heads", plan.shape.kv_heads, shape.kv_heads, true);
  same("head_dim", plan.shape.head_dim, shape.head_dim, true);
  const model_fingerprint& made_for = plan.model;
  same("vocab_size", made_for.vocab_size, model.vocab_size,
       made_for.vocab_size != 0 && model.vocab_size != 0);
  same("tokenizer", made_for.tokenizer, model.tokenizer,
       !made_for.tokenizer.empty() && !model.tokenizer.empty());
  same("name", made_for.name, model.name, !made_for.name.empty() && !model.name.empty());
}

// vocab_size: of the model; 0 where it is not known, and then no class may name ids. Throws
// error(out_of_range) on an id beyond it.
[[nodiscard]] inline token_classifier make_classifier(const token_rules& rules,
                                                      std::uint32_t vocab_size) {
  std::vector<token_classes> by_id(vocab_size, token_classes::none);
  for (const token_class_rule& rule : rules.classes)
    for (const std::int32_t id : rule.ids) {
      if (id < 0 || static_cast<std::uint32_t>(id) >= vocab_size)
        raise(error_code::out_of_range, "tokens.classes." + rule.name, std::to_string(id),
              "an id below vocab_size " + std::to_string(vocab_size));
      by_id[static_cast<std::size_t>(id)] |= rule.bit;
    }
  return token_classifier(rules.sink_count, std::move(by_id));
}
[[nodiscard]] inline token_classifier make_classifier(const blueprint& plan) {
  return make_classifier(plan.tokens, plan.model.vocab_size);
}

HEADWISE_NAMESPACE_END
