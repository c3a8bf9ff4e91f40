// SPDX-License-Identifier: Apache-2.0
//
// policy_spec: a policy as plain data, which is what a blueprint holds, and the way between it and
// the policy types. This is the one file that looks at a policy's kind by name.
//
// A policy type of your own joins a blueprint when it has these three; from_spec may throw error,
// and spec_param() helps it.
//   static constexpr std::string_view kind;
//   static P from_spec(const policy_spec& spec, const std::string& place);
//   policy_spec to_spec() const;
//
// O(parts * ids) a call. Values; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headwise/policy/policy_list.hpp"

HEADWISE_NAMESPACE_BEGIN

struct policy_spec {
  std::string kind;
  std::map<std::string, std::int64_t, std::less<>>
      params;                      // local_window: window; special_tokens: classes;
                                   // heavy_hitters: rows, or fraction_in_millionths and cap
  std::vector<std::int32_t> ids;   // special_tokens only
  std::vector<policy_spec> parts;  // union only
  friend bool operator==(const policy_spec&, const policy_spec&) = default;
};

// A parameter that a policy must have, from low to high. Throws error naming place/name otherwise.
[[nodiscard]] inline std::int64_t spec_param(const policy_spec& spec, std::string_view name,
                                             std::int64_t low, std::int64_t high,
                                             const std::string& place) {
  const auto found = spec.params.find(name);
  if (found == spec.params.end())
    raise(error_code::missing, place + "/" + std::string(name), "nothing",
          "a number in a policy of kind '" + spec.kind + "'");
  if (found->second < low || found->second > high)
    raise(error_code::out_of_range, place + "/" + std::string(name), std::to_string(found->second),
          "a number from " + std::to_string(low) + " to " + std::to_string(high));
  return found->second;
}

namespace detail {

template <class T>
struct is_union : std::false_type {};
template <class... Ps>
struct is_union<union_of<Ps...>> : std::true_type {};

// The kinds and numbers that a spec of a built-in kind may carry, checked once and for all kinds.
inline void check_spec_members(const policy_spec& spec,
                               std::initializer_list<std::string_view> params, bool ids, bool parts,
                               const std::string& place) {
  for (const auto& [name, value] : spec.params)
    if (std::find(params.begin(), params.end(), name) == params.end())
      raise(error_code::malformed, place + "/" + name, std::to_string(value),
            "no such parameter in a policy of kind '" + spec.kind + "'");
  if (!ids && !spec.ids.empty())
    raise(error_code::malformed, place + "/ids", std::to_string(spec.ids.size()) + " ids",
          "no ids in a policy of kind '" + spec.kind + "'");
  if (!parts && !spec.parts.empty())
    raise(error_code::malformed, place + "/parts", std::to_string(spec.parts.size()) + " parts",
          "no parts in a policy of kind '" + spec.kind + "'");
}

[[nodiscard]] inline heavy_hitters heavy_hitters_from_spec(const policy_spec& spec,
                                                           const std::string& place) {
  if (!spec.params.contains("fraction_in_millionths")) {
    check_spec_members(spec, {"rows"}, false, false, place);
    return heavy_hitters(static_cast<token_count>(spec_param(spec, "rows", 0, forever, place)));
  }
  check_spec_members(spec, {"fraction_in_millionths", "cap"}, false, false, place);
  const auto fraction = spec_param(spec, "fraction_in_millionths", 1, heavy_hitters::one, place);
  return heavy_hitters::of_millionths(
      static_cast<std::uint32_t>(fraction),
      static_cast<token_count>(spec_param(spec, "cap", 1, forever, place)));
}

template <class P>
[[nodiscard]] P policy_from_spec(const policy_spec& spec, const std::string& place) {
  if constexpr (std::same_as<P, global>) {
    check_spec_members(spec, {}, false, false, place);
    return {};
  } else if constexpr (std::same_as<P, local_window>) {
    check_spec_members(spec, {"window"}, false, false, place);
    return local_window(static_cast<token_count>(spec_param(spec, "window", 1, forever, place)));
  } else if constexpr (std::same_as<P, special_tokens>) {
    check_spec_members(spec, {"classes"}, true, false, place);
    const std::int64_t classes =
        spec.params.contains("classes")
            ? spec_param(spec, "classes", 0, std::numeric_limits<std::uint32_t>::max(), place)
            : 0;
    for (std::size_t i = 0; i < spec.ids.size(); ++i)
      if (spec.ids[i] < 0)
        raise(error_code::out_of_range, place + "/ids/" + std::to_string(i),
              std::to_string(spec.ids[i]), "an id from 0");
    return special_tokens(static_cast<token_classes>(classes), spec.ids);
  } else if constexpr (std::same_as<P, heavy_hitters>) {
    return heavy_hitters_from_spec(spec, place);
  } else {
    return P::from_spec(spec, place);
  }
}

// Fills the parts of a union, in its type's order, from normalized parts in any order.
template <class... Ps>
[[nodiscard]] std::optional<union_of<Ps...>> union_from_parts(const std::vector<policy_spec>& parts,
                                                              const std::string& place,
                                                              std::type_identity<union_of<Ps...>>) {
  const auto count = [&](std::string_view kind) {
    return std::count_if(parts.begin(), parts.end(), [&](const auto& p) { return p.kind == kind; });
  };
  if (parts.size() != sizeof...(Ps) || !((count(Ps::kind) == 1) && ...)) return std::nullopt;
  const auto part = [&]<class P>(std::type_identity<P>) {
    const auto found =
        std::find_if(parts.begin(), parts.end(), [](const auto& p) { return p.kind == P::kind; });
    return policy_from_spec<P>(*found, place + "/parts/" + std::to_string(found - parts.begin()));
  };
  return union_of<Ps...>(part(std::type_identity<Ps>{})...);
}

template <class P>
[[nodiscard]] std::optional<P> try_policy(const policy_spec& spec, const std::string& place) {
  if (spec.kind != P::kind) return std::nullopt;
  if constexpr (is_union<P>::value)
    return union_from_parts(spec.parts, place, std::type_identity<P>{});
  else
    return policy_from_spec<P>(spec, place);
}

}  // namespace detail

template <retention_policy P>
[[nodiscard]] policy_spec make_spec(const P& policy) {
  if constexpr (std::same_as<P, global>) {
    return {std::string(P::kind), {}, {}, {}};
  } else if constexpr (std::same_as<P, local_window>) {
    return {std::string(P::kind), {{"window", policy.window()}}, {}, {}};
  } else if constexpr (std::same_as<P, special_tokens>) {
    return {std::string(P::kind),
            {{"classes", static_cast<std::int64_t>(policy.classes())}},
            {policy.ids().begin(), policy.ids().end()},
            {}};
  } else if constexpr (std::same_as<P, heavy_hitters>) {
    if (policy.fraction_in_millionths() == 0)
      return {std::string(P::kind), {{"rows", policy.cap()}}, {}, {}};
    return {std::string(P::kind),
            {{"fraction_in_millionths", policy.fraction_in_millionths()}, {"cap", policy.cap()}},
            {},
            {}};
  } else if constexpr (detail::is_union<P>::value) {
    policy_spec spec{std::string(P::kind), {}, {}, {}};
    std::apply([&](const auto&... parts) { (spec.parts.push_back(make_spec(parts)), ...); },
               policy.parts());
    return spec;
  } else {
    return policy.to_spec();
  }
}

namespace detail {

// A spec of a built-in kind as its type writes it, checked; one of another kind as it is.
[[nodiscard]] inline policy_spec checked_leaf(const policy_spec& spec, const std::string& place) {
  if (spec.kind == global::kind) return make_spec(policy_from_spec<global>(spec, place));
  if (spec.kind == local_window::kind)
    return make_spec(policy_from_spec<local_window>(spec, place));
  if (spec.kind == special_tokens::kind)
    return make_spec(policy_from_spec<special_tokens>(spec, place));
  if (spec.kind == heavy_hitters::kind)
    return make_spec(policy_from_spec<heavy_hitters>(spec, place));
  return spec;
}

// Two counts make the larger, two caps of one fraction too; a count and a fraction stay two parts,
// which no cache holds.
[[nodiscard]] inline bool merge_pools(
    std::map<std::string, std::int64_t, std::less<>>& into,
    const std::map<std::string, std::int64_t, std::less<>>& from) {
  const char* const size = into.contains("rows") ? "rows" : "cap";
  if (!from.contains(size)) return false;
  if (into.contains("cap") &&
      into["fraction_in_millionths"] != from.find("fraction_in_millionths")->second)
    return false;
  into[size] = std::max(into[size], from.find(size)->second);
  return true;
}

// Adds a checked part to a flat union.
inline void merge_part(std::vector<policy_spec>& parts, policy_spec part) {
  const auto same = std::find_if(parts.begin(), parts.end(),
                                 [&](const policy_spec& p) { return p.kind == part.kind; });
  if (same != parts.end() && part.kind == local_window::kind) {
    std::int64_t& window = same->params["window"];
    window = std::max(window, part.params["window"]);
  } else if (same != parts.end() && part.kind == special_tokens::kind) {
    same->params["classes"] |= part.params["classes"];
    part.ids.insert(part.ids.end(), same->ids.begin(), same->ids.end());
    const auto both = static_cast<token_classes>(same->params["classes"]);
    *same = make_spec(special_tokens(both, std::move(part.ids)));
  } else if (same != parts.end() && part.kind == heavy_hitters::kind &&
             merge_pools(same->params, part.params)) {
    return;
  } else if (std::find(parts.begin(), parts.end(), part) == parts.end()) {
    parts.push_back(std::move(part));
  }
}

}  // namespace detail

// The same policy in its smallest form: unions flat, windows and special sets merged, global alone.
// A union of one part is that part. Throws as make_policy does, on any part of a built-in kind.
[[nodiscard]] inline policy_spec normalized(const policy_spec& spec,
                                            const std::string& place = "policy") {
  if (spec.kind != "union") return detail::checked_leaf(spec, place);
  detail::check_spec_members(spec, {}, false, true, place);
  if (spec.parts.empty())
    raise(error_code::missing, place + "/parts", "none", "at least one part in a union");
  policy_spec flat{"union", {}, {}, {}};
  bool keeps_all = false;
  for (std::size_t i = 0; i < spec.parts.size(); ++i) {
    policy_spec part = normalized(spec.parts[i], place + "/parts/" + std::to_string(i));
    keeps_all = keeps_all || part.kind == global::kind;
    if (part.kind != "union")
      detail::merge_part(flat.parts, std::move(part));
    else
      for (policy_spec& inner : part.parts) detail::merge_part(flat.parts, std::move(inner));
  }
  if (keeps_all) return make_spec(global{});
  return flat.parts.size() == 1 ? flat.parts.front() : flat;
}

// For messages, and to compare plans: "union(special_tokens(classes=1, ids=[3 5]), local_window
// (window=16))". Equal policies have equal texts.
[[nodiscard]] inline std::string to_string(const policy_spec& spec) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const auto& [name, value] : spec.params) add(name + "=" + std::to_string(value));
  std::string ids;
  for (const std::int32_t id : spec.ids) ids += (ids.empty() ? "" : " ") + std::to_string(id);
  if (!ids.empty()) add("ids=[" + ids + "]");
  for (const policy_spec& part : spec.parts) add(to_string(part));
  return text.empty() ? spec.kind : spec.kind + "(" + text + ")";
}

namespace detail {

// "local_window", "union of special_tokens and local_window"
template <class P>
[[nodiscard]] std::string kind_text(std::type_identity<P>) {
  return std::string(P::kind);
}
template <class... Ps>
[[nodiscard]] std::string kind_text(std::type_identity<union_of<Ps...>>) {
  std::string text;
  ((text += (text.empty() ? "union of " : " and ") + kind_text(std::type_identity<Ps>{})), ...);
  return text;
}
[[nodiscard]] inline std::string kind_text(const policy_spec& spec) {
  std::string text = spec.parts.empty() ? spec.kind : std::string();
  for (const policy_spec& part : spec.parts)
    text += (text.empty() ? "union of " : " and ") + kind_text(part);
  return text;
}

template <class... Ps>
[[nodiscard]] std::variant<Ps...> variant_from_spec(const policy_spec& spec,
                                                    const std::string& place,
                                                    std::type_identity<std::variant<Ps...>>) {
  std::optional<std::variant<Ps...>> result;
  const auto attempt = [&]<class P>(std::type_identity<P>) {
    if (result) return;
    if (auto policy = try_policy<P>(spec, place)) result.emplace(std::move(*policy));
  };
  (attempt(std::type_identity<Ps>{}), ...);
  if (!result) {
    std::string known;
    ((known += (known.empty() ? "'" : ", '") + kind_text(std::type_identity<Ps>{}) + "'"), ...);
    raise(error_code::unsupported, place + "/kind", "'" + kind_text(spec) + "'",
          "a policy that this cache's policy_list holds: " + known);
  }
  return *std::move(result);
}

}  // namespace detail

// The policy that a spec describes, out of the types of a policy_list. Throws error naming the
// place (a JSON pointer) on an unknown kind, a parameter out of range or one that is not the
// kind's.
template <class Policies = builtin_policies>
[[nodiscard]] typename Policies::variant make_policy(const policy_spec& spec,
                                                     const std::string& place = "policy") {
  return detail::variant_from_spec(normalized(spec, place), place,
                                   std::type_identity<typename Policies::variant>{});
}

template <class... Ps>
[[nodiscard]] policy_spec make_spec(const std::variant<Ps...>& policy) {
  return std::visit([](const auto& p) { return make_spec(p); }, policy);
}

HEADWISE_NAMESPACE_END
