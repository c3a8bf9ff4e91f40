// SPDX-License-Identifier: Apache-2.0
//
// headwise eval --suite: many plans x tasks x lengths x row types on one model, as a JSON file asks
// for it.
//
//   {"model": "M.gguf", "maps": ["maps"], "windows": [16, 32, ...], "heavy_hitters": [0.1],
//    "even_pools": [64], "row_types": ["f16"], "lengths": [1024],
//    "plans": [{"name": "full", "kind": "full"},
//              {"name": "headwise", "kind": "budget", "shares": [0.2, 0.4]},
//              {"name": "ladder", "kind": "target", "targets": [0.9, 0.95]}, ...],
//    "tasks": [{"name": "prose", "kind": "text", "text": "test.txt", "samples": 8},
//              {"name": "passkey", "kind": "passkey", "samples": 16, "seed": 1}]}
//
// Paths count from the file's folder. A plan may be profiled on "maps" of its own. A share is of
// the rows of a full cache at the length; each plan but those by target or from a file takes the
// largest of its family that is expected to hold no more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache_type.hpp"
#include "exam.hpp"

namespace headwise_tool {

enum class plan_kind {
  full,             // every token
  budget,           // the profile's, within a share
  budget_by_layer,  // the same, one choice for all heads of a layer
  target,           // the profile's, a target for each head
  target_by_layer,
  shuffled,        // the budget's policies, dealt to the heads at random
  window,          // one for every head
  sinks_window,    // the same behind the sinks (StreamingLLM)
  heavy_hitters,   // half of the rows for the last tokens, half for the most attended (H2O)
  two_classes,     // heads that need it keep everything, others sinks and a window (after
                   // DuoAttention)
  random_classes,  // the same, on heads drawn at random
  middle_global,   // by hand: sinks and a window, but everything in the middle third of the layers
  edges_global,    // the reverse
  blueprint,       // a file
};
inline constexpr plan_kind plan_kinds[] = {
    plan_kind::full,         plan_kind::budget,          plan_kind::budget_by_layer,
    plan_kind::target,       plan_kind::target_by_layer, plan_kind::shuffled,
    plan_kind::window,       plan_kind::sinks_window,    plan_kind::heavy_hitters,
    plan_kind::two_classes,  plan_kind::random_classes,  plan_kind::middle_global,
    plan_kind::edges_global, plan_kind::blueprint};
[[nodiscard]] constexpr std::string_view to_string(plan_kind kind) noexcept {
  constexpr std::string_view names[] = {
      "full",           "budget",        "budget_by_layer", "target",        "target_by_layer",
      "shuffled",       "window",        "sinks_window",    "heavy_hitters", "two_classes",
      "random_classes", "middle_global", "edges_global",    "blueprint"};
  return names[static_cast<std::size_t>(kind)];
}
// Whether its levels are targets, and no shares.
[[nodiscard]] constexpr bool is_by_target(plan_kind kind) noexcept {
  return kind == plan_kind::target || kind == plan_kind::target_by_layer;
}
[[nodiscard]] constexpr bool has_shares(plan_kind kind) noexcept {
  return kind != plan_kind::full && kind != plan_kind::blueprint && !is_by_target(kind);
}
// Whether it is what the profile makes of a share.
[[nodiscard]] constexpr bool is_within_budget(plan_kind kind) noexcept {
  return kind == plan_kind::budget || kind == plan_kind::budget_by_layer ||
         kind == plan_kind::shuffled;
}
[[nodiscard]] constexpr bool needs_profile(plan_kind kind) noexcept {
  return is_within_budget(kind) || is_by_target(kind) || kind == plan_kind::two_classes;
}
[[nodiscard]] constexpr bool has_window(plan_kind kind) noexcept {
  return kind == plan_kind::two_classes || kind == plan_kind::random_classes;
}
[[nodiscard]] constexpr bool is_drawn(plan_kind kind) noexcept {
  return kind == plan_kind::shuffled || kind == plan_kind::random_classes;
}

struct plan_family {
  std::string name;
  plan_kind kind = plan_kind::full;
  std::vector<double> levels;  // shares, or targets; one for full and blueprint, which have none
  headwise::token_count window = 64;  // of the heads with a window, where others keep everything
  std::uint64_t seed = 1;
  std::filesystem::path file;
  std::vector<std::filesystem::path> maps;  // that it is profiled on: its own, or the suite's
};

struct suite {
  std::filesystem::path model;
  std::vector<std::filesystem::path> maps;
  std::vector<headwise::token_count> windows;  // empty: those of headwise profile
  std::vector<double> heavy_hitters;
  std::vector<headwise::token_count> even_pools;
  std::vector<cache_type> row_types;
  std::vector<std::size_t> lengths;
  std::vector<plan_family> plans;
  std::vector<task_options> tasks;
};

// Throws headwise::error with the place in the file.
[[nodiscard]] suite load_suite(const std::filesystem::path& path);

}  // namespace headwise_tool
