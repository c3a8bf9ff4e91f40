// SPDX-License-Identifier: Apache-2.0
//
// A blueprint that uses every part of the file form, and the way to text and back.
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "headwise/io/blueprint_json.hpp"

namespace headwise_tests {

// 2 layers of 2 KV heads: four policies, three classes, candidates, sources.
[[nodiscard]] inline headwise::blueprint made_blueprint() {
  using namespace headwise;
  blueprint plan;
  plan.shape = {2, 4, 2, 64};
  plan.model = {"tiny \"quoted\" \xc3\xa9", 100, "0123abcd"};
  plan.tokens = {4,
                 {{"special", token_classes::special, {0, 1, 2}},
                  {"punctuation", token_classes::punctuation, {13, 30}},
                  {"digits", static_cast<token_classes>(first_user_class), {40, 41, 42}}}};
  plan.origin = {0.975,
                 group_aggregation::worst,
                 recovery_criterion::mass,
                 plan_granularity::head,
                 8,
                 4096,
                 512,
                 {{"maps.safetensors", std::string(64, 'a')}},
                 "headwise 0.1.0"};
  const auto digits = static_cast<token_classes>(first_user_class);
  const special_tokens sinks(token_classes::sink | token_classes::special);
  const special_tokens learned(token_classes::sink | digits, {7, 99});
  const auto head = [](std::string name, const policy_spec& policy, double recovery,
                       double resident) {
    head_plan made;
    made.name = std::move(name);
    made.policy = policy;
    made.recovery = recovery;
    made.resident_fraction = resident;
    made.forever_fraction = resident / 3;
    made.candidates = {{"sinks", 0.1, 1.0 / 3}, {made.name, recovery, resident}};
    return made;
  };
  plan.heads = {head("window 4096", make_spec(local_window(4096)), 0.975, 0.25),
                head("global", make_spec(global{}), 1, 1),
                head("sinks+window", make_spec(union_of(sinks, local_window(16))), 0.98, 0.1),
                head("learned", make_spec(learned), 0.9750000000000001, 5e-324)};
  return plan;
}

template <class Policies = headwise::builtin_policies>
[[nodiscard]] std::string text_of(const headwise::blueprint& plan) {
  std::ostringstream out;
  headwise::write_blueprint<Policies>(out, plan);
  return out.str();
}

template <class Policies = headwise::builtin_policies>
[[nodiscard]] headwise::blueprint blueprint_of(const std::string& text) {
  std::istringstream in(text);
  return headwise::read_blueprint<Policies>(in, "plan.json");
}

// text with the one occurrence of `from` replaced.
[[nodiscard]] inline std::string with(std::string text, const std::string& from,
                                      const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return text;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from << " is there twice";
  return text.replace(at, from.size(), to);
}

}  // namespace headwise_tests
