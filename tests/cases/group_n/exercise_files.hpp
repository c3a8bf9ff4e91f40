// SPDX-License-Identifier: Apache-2.0
//
// Profiles a few made-up attention maps and writes the blueprint: what profile and io do, as text.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <headwise/io/blueprint_json.hpp>
#include <headwise/profile/profiler.hpp>

namespace {

// A causal map whose head attends ever farther back the higher its number is.
inline std::vector<float> made_up_map(std::size_t length, std::uint32_t head) {
  std::vector<float> weights(length * length, 0.0F);
  for (std::size_t q = 0; q < length; ++q) {
    double sum = 0.0;
    for (std::size_t k = 0; k <= q; ++k)
      sum += std::exp(-static_cast<double>(q - k) / (1.0 + 4.0 * head));
    for (std::size_t k = 0; k <= q; ++k)
      weights[q * length + k] =
          static_cast<float>(std::exp(-static_cast<double>(q - k) / (1.0 + 4.0 * head)) / sum);
  }
  return weights;
}

[[maybe_unused]] headwise::blueprint exercise_profile() {
  using namespace headwise;
  const model_shape shape{1, 4, 2, 8};
  const token_rules rules{2, {{"special", token_classes::special, {0, 1}}}};
  const token_classifier classifier = make_classifier(rules, 16);
  profiler<> work(shape, rules);
  for (std::uint64_t prompt = 0; prompt < 2; ++prompt) {
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 48; ++i) ids.push_back(i * 5 % 16);
    const auto keys = classifier.tokens(ids);
    for (std::uint32_t head = 0; head < shape.query_heads; ++head) {
      const std::vector<float> weights = made_up_map(keys.size(), head);
      work.add({prompt, 0, head, 0, {weights.data(), keys.size(), keys.size()}, keys, "made up"});
    }
  }
  model_fingerprint model{"made up", 16, "0123"};
  return work.plan({}, model);
}

[[maybe_unused]] std::string as_text(const headwise::blueprint& plan) {
  std::ostringstream out;
  headwise::write_blueprint(out, plan);
  return out.str();
}

[[maybe_unused]] headwise::blueprint from_text(const std::string& text) {
  std::istringstream in(text);
  return headwise::read_blueprint(in, "made up");
}

}  // namespace
