// SPDX-License-Identifier: Apache-2.0
//
// What a plan costs and what it saves on a text: perplexity, agreement with the full cache, bytes
// that the cache's memory resource held, speed.
//
// The text is cut into windows; each is fed to an empty cache in steps of step_tokens. After every
// step the bytes held are read; "mean" is over all steps of all windows, that is, over positions.
// 100 % is the payload of a dense cache at the same positions: keys and values, nothing else. What
// headwise holds includes its positions, page tables and unfilled slots.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine.hpp"
#include "held_bytes.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// A text, and what it is run through.
struct evaluated_text {
  std::filesystem::path model, text;
  std::size_t window = 1024;  // tokens that each empty cache is fed
  std::size_t tokens = 4096;  // in all, in whole windows; fewer where the text is shorter
  engine_choice engine;
};

// One plan on one text.
struct plan_score {
  double perplexity = 0.0;
  double agreement = 1.0;       // share of positions with the same likeliest token as full
  double resident_bytes = 0.0;  // mean of what the memory resource held
  double payload_bytes = 0.0;   // mean of the keys and values among them
  std::uint64_t peak_bytes = 0;
  double tokens_per_second = 0.0;
  friend bool operator==(const plan_score&, const plan_score&) = default;
};

// A blueprint, and windows that hold at least as many bytes.
struct blueprint_score {
  double recovery_target = 0.0;
  plan_score blueprint;
  headwise::token_count window = 0;  // tokens of the plain window
  plan_score plain_window;
  headwise::token_count sinks = 0;
  headwise::token_count window_behind_sinks = 0;
  plan_score sinks_and_window;
  friend bool operator==(const blueprint_score&, const blueprint_score&) = default;
};

struct evaluation {
  std::string model;
  headwise::model_shape shape;
  std::string cache;
  std::string text;  // name of the file
  std::uint64_t tokens_profiled = 0;
  std::uint64_t tokens_evaluated = 0;
  std::uint64_t window_tokens = 0;
  double full_bytes = 0.0;  // mean payload of a dense cache
  plan_score full;
  std::vector<blueprint_score> scores;  // the first is the one asked for, the others the curve
  friend bool operator==(const evaluation&, const evaluation&) = default;
};

// As many windows as the text has for the tokens asked for, at least one. Throws as cut_up_to()
// does.
[[nodiscard]] std::vector<token_ids> cut_windows(const engine& model, const evaluated_text& what);

// Called with the tokens fed so far, over all plans.
using evaluation_progress = std::function<void(std::uint64_t tokens)>;

// windows: of equal length. Throws headwise::error where a blueprint is for another model.
[[nodiscard]] evaluation evaluate(engine& model, const std::vector<token_ids>& windows,
                                  const std::vector<headwise::blueprint>& blueprints,
                                  cache_type type, const evaluation_progress& report);

// Of one plan alone: the perplexity that evaluate() finds.
[[nodiscard]] double perplexity_of(engine& model, const std::vector<token_ids>& windows,
                                   const headwise::blueprint& plan, cache_type type,
                                   const evaluation_progress& report);

// Plans that evaluate() runs for so many blueprints: full, and three for each.
[[nodiscard]] constexpr std::size_t plans_of(std::size_t blueprints) noexcept {
  return 1 + 3 * blueprints;
}

}  // namespace headwise_tool
