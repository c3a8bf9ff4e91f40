// SPDX-License-Identifier: Apache-2.0
//
// What a person calls a head's policy: its class, read off the policy's parts, with a short label
// for maps, words for legends and a colour.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

enum class head_kind { special, window, global, other };  // by rising cost; other: not built in

struct head_class {
  head_kind kind = head_kind::other;
  headwise::token_count window = 0;  // of kind window
  bool frequent = false;             // the tokens that drew the most attention
  bool punctuation = false;          // kept for ever, as are:
  bool learned = false;              // token ids that the profile found
  bool special = false;              // special tokens
  bool sinks = false;                // the first tokens
  friend auto operator<=>(const head_class&, const head_class&) = default;
};

struct colours {
  std::string_view fill;  // "#rrggbb"
  std::string_view ink;   // for text on it
};

[[nodiscard]] head_class class_of(const headwise::policy_spec& policy);

[[nodiscard]] std::string label(const head_class& c);     // S  64  64.  64+  64*  all
[[nodiscard]] std::string in_words(const head_class& c);  // sinks, punctuation, the last 64
[[nodiscard]] colours colours_of(const head_class& c) noexcept;

struct class_count {
  head_class what;
  std::size_t heads = 0;
  double mean_recovery = 0.0;
  double mean_resident_fraction = 0.0;
};
// The classes of a blueprint, the cheapest kind first.
[[nodiscard]] std::vector<class_count> classes_of(const headwise::blueprint& plan);

}  // namespace headwise_tool
