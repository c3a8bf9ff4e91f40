// SPDX-License-Identifier: Apache-2.0
//
// load_blueprint, read_blueprint: see blueprint_json.hpp. Time and memory are proportional to the
// text. No shared state: any number of threads may read.
#pragma once

#include <array>
#include <filesystem>
#include <istream>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "headwise/io/mapped_file.hpp"
#include "headwise/io/token_rules_json.hpp"

HEADWISE_NAMESPACE_BEGIN

inline constexpr std::string_view blueprint_format = "headwise-blueprint";
inline constexpr std::uint32_t blueprint_version = 1;

namespace detail {

template <class Int>
inline constexpr Int largest = std::numeric_limits<Int>::max();

inline void require_format(const json_cursor& json) {
  const json_cursor format = json.at("format");
  if (format.text() != blueprint_format)
    raise(error_code::malformed, format.place(), in_quotes(format.text()),
          in_quotes(blueprint_format));
  const json_cursor version = json.at("version");
  const auto number = version.integer<std::uint64_t>(0, largest<std::uint64_t>);
  if (number != blueprint_version)
    raise(error_code::unsupported, version.place(), "version " + std::to_string(number),
          "version " + std::to_string(blueprint_version));
}

inline void read_model(const json_cursor& json, blueprint& plan) {
  json.require_known(
      {"name", "layers", "query_heads", "kv_heads", "head_dim", "vocab_size", "fingerprint"});
  const auto size = [&](const char* name) {
    return json.at(name).integer<std::uint32_t>(1, largest<std::uint32_t>);
  };
  plan.shape = {size("layers"), size("query_heads"), size("kv_heads"), size("head_dim")};
  validate(plan.shape, json.place());
  plan.model = {json.at("name").text(),
                json.at("vocab_size").integer<std::uint32_t>(0, max_vocab_size),
                json.at("fingerprint").text()};
}

[[nodiscard]] inline token_rules read_token_rules(const json_cursor& json,
                                                  std::uint32_t vocab_size) {
  json.require_known({"sink_count", "classes"});
  return {json.at("sink_count").integer<token_count>(0, largest<token_count>),
          read_classes(json.at("classes"), vocab_size)};
}

// The one of `values` whose to_string is the text of `json`.
template <class Enum, std::size_t N>
[[nodiscard]] Enum read_choice(const json_cursor& json, const std::array<Enum, N>& values) {
  std::string names;
  for (const Enum value : values) {
    if (json.text() == to_string(value)) return value;
    names += (names.empty() ? "" : ", ") + std::string(to_string(value));
  }
  json.fail(error_code::malformed, "one of " + names);
}

[[nodiscard]] inline provenance read_provenance(const json_cursor& json) {
  json.require_known({"recovery_target", "budget", "aggregation", "criterion", "granularity",
                      "prompts", "queries", "length", "tool", "sources"});
  provenance origin;
  origin.recovery_target = json.at("recovery_target").real(0, 1);
  if (json.contains("budget")) origin.budget = json.at("budget").real(0, 1);
  origin.aggregation = read_choice(
      json.at("aggregation"),
      std::array{group_aggregation::worst, group_aggregation::mean, group_aggregation::max});
  origin.criterion = read_choice(
      json.at("criterion"), std::array{recovery_criterion::mass, recovery_criterion::distance});
  origin.granularity = read_choice(json.at("granularity"),
                                   std::array{plan_granularity::head, plan_granularity::layer});
  origin.prompts = json.at("prompts").integer<std::uint64_t>(0, largest<std::uint64_t>);
  origin.queries = json.at("queries").integer<std::uint64_t>(0, largest<std::uint64_t>);
  origin.length = json.at("length").integer<token_count>(0, max_length);
  origin.tool = json.at("tool").text();
  const json_cursor sources = json.at("sources");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].require_known({"name", "sha256"});
    origin.sources.push_back({sources[i].at("name").text(), sources[i].at("sha256").text()});
  }
  return origin;
}

// ["special", "digits"] as a bit set. Every class but "sink", which is made of positions, must be
// declared: a policy of a class that has no ids by mistake would quietly keep nothing.
[[nodiscard]] inline std::int64_t read_class_set(const json_cursor& json,
                                                 const token_rules& rules) {
  token_classes set = token_classes::none;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string& name = json[i].text();
    token_classes bit = name == "sink" ? token_classes::sink : token_classes::none;
    for (const token_class_rule& rule : rules.classes)
      if (rule.name == name) bit = rule.bit;
    if (!any(bit)) json[i].fail(error_code::missing, "a class of /tokens/classes");
    if (any(set & bit)) json[i].fail(error_code::duplicate, "each class once");
    set |= bit;
  }
  return static_cast<std::int64_t>(set);
}

// Arrays that a built-in kind has no use for, empty ones too, of which a policy_spec keeps nothing.
inline void refuse_strange_array(const std::string& name, const json_cursor& value,
                                 const std::string& kind) {
  const bool leaf =
      kind == global::kind || kind == local_window::kind || kind == heavy_hitters::kind;
  if ((name == "ids" && (leaf || kind == "union")) ||
      (name == "parts" && (leaf || kind == special_tokens::kind)))
    raise(error_code::malformed, value.place(), std::to_string(value.size()) + " " + name,
          "no " + name + " in a policy of kind " + in_quotes(kind));
}

// Members that no built-in kind has are numbers of a kind of the user's own.
[[nodiscard]] inline policy_spec read_policy(const json_cursor& json, const blueprint& plan,
                                             bool named) {
  policy_spec spec;
  spec.kind = json.at("kind").text();
  json.for_each_member([&](const std::string& name, const json_cursor& value) {
    if (name == "kind" || (named && name == "name")) return;
    refuse_strange_array(name, value, spec.kind);
    if (name == "classes") {
      spec.params.emplace(name, read_class_set(value, plan.tokens));
    } else if (name == "ids") {
      spec.ids = read_ids(value);
      for (std::size_t i = 0; i < spec.ids.size(); ++i)
        check_token_id(spec.ids[i], plan.model.vocab_size, value[i].place());
    } else if (name == "parts") {
      for (std::size_t i = 0; i < value.size(); ++i)
        spec.parts.push_back(read_policy(value[i], plan, false));
    } else {
      spec.params.emplace(name,
                          value.integer<std::int64_t>(std::numeric_limits<std::int64_t>::min(),
                                                      largest<std::int64_t>));
    }
  });
  return spec;
}

using named_policies = std::map<std::string, policy_spec, std::less<>>;

template <class Policies>
[[nodiscard]] named_policies read_policies(const json_cursor& json, const blueprint& plan) {
  named_policies policies;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const json_cursor name = json[i].at("name");
    policy_spec spec = read_policy(json[i], plan, true);
    static_cast<void>(make_policy<Policies>(spec, json[i].place()));
    if (!policies.emplace(name.text(), std::move(spec)).second)
      name.fail(error_code::duplicate, "each name once");
  }
  return policies;
}

[[nodiscard]] inline head_plan read_head(const json_cursor& json, const named_policies& policies) {
  json.require_known({"policy", "recovery", "resident_fraction", "forever_fraction", "candidates"});
  const json_cursor policy = json.at("policy");
  const auto found = policies.find(policy.text());
  if (found == policies.end()) policy.fail(error_code::missing, "the name of one of /policies");
  head_plan head;
  head.name = found->first;
  head.policy = found->second;
  head.recovery = json.at("recovery").real(0, 1);
  head.resident_fraction = json.at("resident_fraction").real(0, 1);
  if (json.contains("forever_fraction"))
    head.forever_fraction = json.at("forever_fraction").real(0, 1);
  const json_cursor candidates = json.at("candidates");
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const json_cursor candidate = candidates[i];
    candidate.require_known({"name", "recovery", "resident_fraction"});
    head.candidates.push_back({candidate.at("name").text(), candidate.at("recovery").real(0, 1),
                               candidate.at("resident_fraction").real(0, 1)});
  }
  return head;
}

// An array of as many items as /model says.
inline void require_size(const json_cursor& json, const char* what, std::uint32_t expected) {
  if (json.size() != expected)
    raise(error_code::shape_mismatch, json.place(), std::to_string(json.size()) + " " + what,
          std::to_string(expected) + " as /model/" + what + " says");
}

template <class Policies>
[[nodiscard]] blueprint parse_blueprint(std::string_view text, const std::string& place) {
  const json_value root = parse_json(text, place);
  const json_cursor json(root, place);
  require_format(json);
  json.require_known({"format", "version", "model", "tokens", "profile", "policies", "heads"});
  blueprint plan;
  read_model(json.at("model"), plan);
  plan.tokens = read_token_rules(json.at("tokens"), plan.model.vocab_size);
  plan.origin = read_provenance(json.at("profile"));
  const named_policies policies = read_policies<Policies>(json.at("policies"), plan);
  const json_cursor layers = json.at("heads");
  require_size(layers, "layers", plan.shape.layers);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const json_cursor heads = layers[layer];
    require_size(heads, "kv_heads", plan.shape.kv_heads);
    for (std::size_t i = 0; i < heads.size(); ++i)
      plan.heads.push_back(read_head(heads[i], policies));
  }
  return plan;
}

}  // namespace detail

// place: what messages call the stream. Policies: what the cache can hold; a blueprint with another
// policy is refused. Throws error naming the JSON pointer or the byte.
template <class Policies = builtin_policies>
[[nodiscard]] blueprint read_blueprint(std::istream& in, const std::string& place = "blueprint") {
  std::string text;
  std::array<char, 4096> part{};
  while (in.read(part.data(), part.size()), in.gcount() > 0)
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) raise(error_code::unreadable, place, "a read that failed", "a readable stream");
  return detail::parse_blueprint<Policies>(text, place);
}

template <class Policies = builtin_policies>
[[nodiscard]] blueprint load_blueprint(const std::filesystem::path& path) {
  const mapped_file file(path);
  const auto bytes = file.bytes();
  return detail::parse_blueprint<Policies>(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

HEADWISE_NAMESPACE_END
