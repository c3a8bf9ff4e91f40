// SPDX-License-Identifier: Apache-2.0

#include "suite_plans.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "blueprint_file.hpp"
#include "measure.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/profile/baselines.hpp"

namespace headwise_tool {
namespace {

using headwise::blueprint;
using headwise::head_plan;
using headwise::token_count;

constexpr std::uint32_t sinks = 4;  // as in StreamingLLM; recorded maps bring their own number

std::string streaming_name(token_count window) {
  return "streaming(" + std::to_string(window) + ")";
}

headwise::profiler<> profiled_maps(const suite& what, const headwise::map_archive& archive,
                                   token_count length) {
  headwise::measure_options how;
  how.length = length;
  const bool within_budget =
      std::any_of(what.plans.begin(), what.plans.end(), [](const plan_family& family) {
        return family.kind == plan_kind::budget || family.kind == plan_kind::budget_by_layer;
      });
  if (!what.windows.empty())
    how.ladder.windows = what.windows;
  else if (within_budget)
    how.ladder.windows = headwise::budget_windows(length);
  how.ladder.heavy_hitters = what.heavy_hitters;
  how.ladder.even_pools = what.even_pools;
  for (const plan_family& family : what.plans) {
    const std::string name = streaming_name(family.window);
    const bool known = std::any_of(how.candidates.begin(), how.candidates.end(),
                                   [&](const headwise::candidate& c) { return c.name == name; });
    if (family.kind == plan_kind::two_classes && !known)
      how.candidates.push_back(
          {name, headwise::window_head(family.window, true, archive.rules(), length).policy});
  }
  return measure(archive, how, std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

suite_plans::suite_plans(const model_facts& model, const suite& what, token_count length)
    : model_(model), suite_(what), length_(length) {
  like_ = headwise::uniform_blueprint(model.shape, headwise::make_spec(headwise::global{}), {},
                                      {sinks, {}});
  like_.model = model.fingerprint;
  like_.origin.length = length;
  for (const plan_family& family : what.plans) {
    if (!needs_profile(family.kind) || profiles_.contains(family.maps)) continue;
    const headwise::map_archive archive(family.maps);
    if (profiles_.empty()) like_.tokens = archive.rules();
    profiles_.emplace(family.maps, profiled_maps(what, archive, length));
  }
}

std::optional<blueprint> suite_plans::make(const plan_family& family, double level) const {
  switch (family.kind) {
    case plan_kind::full:
      return like_;
    case plan_kind::blueprint:
      return read_matching_blueprint(family.file, model_, suite_.model);
    case plan_kind::budget:
    case plan_kind::budget_by_layer:
    case plan_kind::target:
    case plan_kind::target_by_layer:
      return profiled(family, level);
    case plan_kind::two_classes:
    case plan_kind::random_classes:
      return two_classes(family, level);
    default:
      return by_rule(family, level);
  }
}

blueprint suite_plans::profiled(const plan_family& family, double level) const {
  headwise::classify_options how;
  const bool by_target = is_by_target(family.kind);
  how.recovery_target = by_target ? level : 0.0;
  if (!by_target) how.budget = level;
  if (family.kind == plan_kind::target_by_layer || family.kind == plan_kind::budget_by_layer)
    how.granularity = headwise::plan_granularity::layer;
  return profiles_.at(family.maps).plan(how, model_.fingerprint);
}

std::optional<blueprint> suite_plans::by_rule(const plan_family& family, double share) const {
  const auto window = [&](std::size_t rows, bool with_sinks) {
    return headwise::window_head(static_cast<token_count>(rows), with_sinks, like_.tokens, length_);
  };
  const auto plan_of = [&](std::size_t rows) {
    switch (family.kind) {
      case plan_kind::window:
        return headwise::uniform_plan(like_, window(rows, false), length_);
      case plan_kind::heavy_hitters:
        return headwise::uniform_plan(
            like_,
            headwise::heavy_hitter_head(static_cast<token_count>(rows), like_.tokens, length_),
            length_);
      case plan_kind::middle_global:
        return headwise::rule_of_thumb_plan(like_, window(rows, true), head_plan{});
      case plan_kind::edges_global:
        return headwise::rule_of_thumb_plan(like_, head_plan{}, window(rows, true));
      default:
        return headwise::uniform_plan(like_, window(rows, true), length_);
    }
  };
  const auto rows = headwise::largest_within(share * length_, length_, length_, plan_of);
  return rows ? std::optional(plan_of(*rows)) : std::nullopt;
}

std::optional<blueprint> suite_plans::two_classes(const plan_family& family, double share) const {
  const std::vector<std::size_t> order =
      family.kind == plan_kind::random_classes
          ? headwise::random_order(like_.heads.size(), family.seed)
          : headwise::order_by_need(profiles_.at(family.maps).plan({}),
                                    streaming_name(family.window));
  const head_plan local = headwise::window_head(family.window, true, like_.tokens, length_);
  const auto plan_of = [&](std::size_t globals) {
    return headwise::two_class_plan(like_, order, globals, local);
  };
  const auto globals = headwise::largest_within(share * length_, length_, order.size(), plan_of);
  return globals ? std::optional(plan_of(*globals)) : std::nullopt;
}

}  // namespace headwise_tool
