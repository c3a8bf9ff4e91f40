// SPDX-License-Identifier: Apache-2.0

#include "suite_plans.hpp"

#include <algorithm>
#include <set>
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

headwise::measure_options ladder_of(const suite& what, token_count length) {
  headwise::measure_options how;
  const bool within_budget =
      std::any_of(what.plans.begin(), what.plans.end(),
                  [](const plan_family& family) { return is_within_budget(family.kind); });
  if (!what.windows.empty())
    how.ladder.windows = what.windows;
  else if (within_budget)
    how.ladder.windows = headwise::budget_windows(length);
  how.ladder.heavy_hitters = what.heavy_hitters;
  how.ladder.even_pools = what.even_pools;
  return how;
}
headwise::measure_options streaming_heads_of(const suite& what, const headwise::token_rules& rules,
                                             token_count length) {
  headwise::measure_options how;
  how.use_ladder = false;
  std::set<token_count> windows;
  for (const plan_family& family : what.plans)
    if (family.kind == plan_kind::two_classes && windows.insert(family.window).second)
      how.candidates.push_back({streaming_name(family.window),
                                headwise::window_head(family.window, true, rules, length).policy});
  return how;
}

}  // namespace

suite_plans::suite_plans(const model_facts& model, const suite& what, token_count length)
    : model_(model), suite_(what), length_(length) {
  like_ = headwise::uniform_blueprint(model.shape, headwise::make_spec(headwise::global{}), {},
                                      {sinks, {}});
  like_.model = model.fingerprint;
  like_.origin.length = length;
  for (const plan_family& family : what.plans)
    if (needs_profile(family.kind)) read_maps(family);
}

void suite_plans::read_maps(const plan_family& family) {
  const bool is_order = family.kind == plan_kind::two_classes;
  by_maps& measured = is_order ? needs_ : profiles_;
  if (measured.contains(family.maps)) return;
  const headwise::map_archive archive(family.maps);
  blueprint of_maps = like_;
  of_maps.shape = archive.shape();
  of_maps.model = archive.fingerprint();
  require_match(of_maps, family.maps.front(), model_, suite_.model);
  if (profiles_.empty() && needs_.empty()) like_.tokens = archive.rules();
  if (archive.rules() != like_.tokens)
    headwise::raise(headwise::error_code::shape_mismatch, family.maps.front().string(),
                    "sinks or token classes of their own",
                    "those of the first maps of the suite, as all plans share them");
  headwise::measure_options how =
      is_order ? streaming_heads_of(suite_, archive.rules(), length_) : ladder_of(suite_, length_);
  how.length = length_;
  measured.emplace(family.maps,
                   measure(archive, how, std::max(1U, std::thread::hardware_concurrency())));
}

std::optional<blueprint> suite_plans::make(const plan_family& family, double level) const {
  switch (family.kind) {
    case plan_kind::full:
      return like_;
    case plan_kind::blueprint:
      return read_matching_blueprint(family.file, model_, suite_.model);
    case plan_kind::budget:
    case plan_kind::budget_by_layer:
    case plan_kind::shuffled:
      return within_budget(family, level);
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

std::optional<blueprint> suite_plans::within_budget(const plan_family& family, double share) const {
  try {
    const blueprint plan = profiled(family, share);
    return family.kind == plan_kind::shuffled ? headwise::shuffled_plan(plan, family.seed) : plan;
  } catch (const headwise::error& e) {
    if (e.code() == headwise::error_code::out_of_range) return std::nullopt;
    throw;
  }
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
          : headwise::order_by_need(needs_.at(family.maps).plan({}), streaming_name(family.window));
  const head_plan local = headwise::window_head(family.window, true, like_.tokens, length_);
  const auto plan_of = [&](std::size_t globals) {
    return headwise::two_class_plan(like_, order, globals, local);
  };
  const auto globals = headwise::largest_within(share * length_, length_, order.size(), plan_of);
  return globals ? std::optional(plan_of(*globals)) : std::nullopt;
}

}  // namespace headwise_tool
