// SPDX-License-Identifier: Apache-2.0

#include "head_class.hpp"

#include <array>
#include <map>

namespace headwise_tool {
namespace {

// One scale from pale to dark, by what a class keeps; global stands out.
constexpr colours special_colours{"#fdf0a6", "#332b00"};
constexpr colours punctuation_colours{"#f6dc6e", "#332b00"};
constexpr colours global_colours{"#c94a00", "#ffffff"};
constexpr colours other_colours{"#969696", "#111111"};

struct window_step {
  headwise::token_count up_to;
  colours look;
};
constexpr std::array window_steps{
    window_step{16, {"#d9f0b0", "#0a1e14"}},
    window_step{32, {"#a8dcb5", "#0a1e14"}},
    window_step{64, {"#6ec9bd", "#06201d"}},
    window_step{128, {"#3fb1c4", "#051a1f"}},
    window_step{192, {"#2f97c4", "#04131c"}},
    window_step{256, {"#2268ad", "#ffffff"}},
    window_step{384, {"#263f99", "#ffffff"}},
    window_step{headwise::forever, {"#1b2468", "#ffffff"}},
};

std::int64_t parameter(const headwise::policy_spec& spec, std::string_view name) {
  const auto found = spec.params.find(name);
  return found == spec.params.end() ? 0 : found->second;
}

// False where the part is none of the built-in ones.
bool add_part(head_class& c, const headwise::policy_spec& part) {
  if (part.kind == headwise::local_window::kind) {
    c.window = static_cast<headwise::token_count>(parameter(part, "window"));
  } else if (part.kind == headwise::special_tokens::kind) {
    const headwise::token_classes classes{static_cast<std::uint32_t>(parameter(part, "classes"))};
    c.sinks |= any(classes & headwise::token_classes::sink);
    c.special |= any(classes & headwise::token_classes::special);
    c.punctuation |= any(classes & headwise::token_classes::punctuation);
    c.learned |= !part.ids.empty();
  } else if (part.kind == headwise::heavy_hitters::kind) {
    c.frequent = true;
  } else {
    return false;
  }
  c.kind = c.window > 0 ? head_kind::window : head_kind::special;
  return true;
}

}  // namespace

head_class class_of(const headwise::policy_spec& policy) {
  const headwise::policy_spec flat = headwise::normalized(policy);
  head_class result;
  if (flat.kind == headwise::global::kind) {
    result.kind = head_kind::global;
    return result;
  }
  const std::vector<headwise::policy_spec> alone{flat};
  for (const headwise::policy_spec& part : flat.kind == "union" ? flat.parts : alone)
    if (!add_part(result, part)) return {};
  return result;
}

std::string label(const head_class& c) {
  if (c.kind == head_kind::global) return "all";
  if (c.kind == head_kind::other) return "?";
  std::string text = c.kind == head_kind::special ? "S" : std::to_string(c.window);
  if (c.punctuation) text += '.';
  if (c.learned) text += '+';
  if (c.frequent) text += '*';
  return text;
}

std::string in_words(const head_class& c) {
  if (c.kind == head_kind::global) return "every token";
  if (c.kind == head_kind::other) return "a policy of its own";
  std::string text;
  const auto add = [&](bool present, const std::string& what) {
    if (present) text += (text.empty() ? "" : ", ") + what;
  };
  add(c.sinks, "sinks");
  add(c.special, "special tokens");
  add(c.punctuation, "punctuation");
  add(c.learned, "learned tokens");
  add(c.kind == head_kind::window, "the last " + std::to_string(c.window));
  add(c.frequent, "the most attended");
  return text.empty() ? "nothing but the query's own token" : text;
}

colours colours_of(const head_class& c) noexcept {
  if (c.kind == head_kind::global) return global_colours;
  if (c.kind == head_kind::other) return other_colours;
  if (c.kind == head_kind::special) return c.punctuation ? punctuation_colours : special_colours;
  for (const window_step& step : window_steps)
    if (c.window <= step.up_to) return step.look;
  return other_colours;
}

std::vector<class_count> classes_of(const headwise::blueprint& plan) {
  std::map<head_class, class_count> found;
  for (const headwise::head_plan& head : plan.heads) {
    class_count& c = found[class_of(head.policy)];
    ++c.heads;
    c.mean_recovery += head.recovery;
    c.mean_resident_fraction += head.resident_fraction;
  }
  std::vector<class_count> counts;
  for (auto& [what, count] : found) {
    count.what = what;
    count.mean_recovery /= static_cast<double>(count.heads);
    count.mean_resident_fraction /= static_cast<double>(count.heads);
    counts.push_back(count);
  }
  return counts;
}

}  // namespace headwise_tool
