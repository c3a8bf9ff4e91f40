// SPDX-License-Identifier: Apache-2.0

#include "suite.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>
#include <string_view>

#include "headwise/io/mapped_file.hpp"
#include "headwise/io/strict_json.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;
using headwise::error_code;
using headwise::detail::json_cursor;

// The one of `values` whose to_string is the text.
template <class Range>
auto one_of(const json_cursor& from, const Range& values) {
  std::string names;
  for (const auto value : values) {
    if (from.text() == to_string(value)) return value;
    names += (names.empty() ? "" : ", ") + std::string(to_string(value));
  }
  from.fail(error_code::malformed, "one of " + names);
}

// fn(item) for each of a member that may be absent.
template <class Fn>
void for_each_of(const json_cursor& from, std::string_view name, Fn&& fn) {
  if (!from.contains(name)) return;
  const json_cursor items = from.at(name);
  for (std::size_t i = 0; i < items.size(); ++i) fn(items[i]);
}
template <class Items>
void require_some(const json_cursor& from, std::string_view name, const Items& items) {
  if (items.empty()) from.at(name).fail(error_code::missing, "at least one");
}

// Refuses a member that means nothing to a plan, or a task, of this kind.
struct member_use {
  std::string_view name;
  bool used = false;
};
void require_used(const json_cursor& from, std::string_view kind,
                  std::initializer_list<member_use> members) {
  for (const auto& [name, used] : members)
    if (!used && from.contains(name))
      from.at(name).fail(error_code::malformed,
                         "no '" + std::string(name) + "' of kind '" + std::string(kind) + "'");
}

class suite_reader {
 public:
  suite_reader(const json_cursor& root, fs::path folder)
      : root_(root), folder_(std::move(folder)) {}

  [[nodiscard]] suite read() {
    root_.require_known({"model", "maps", "windows", "heavy_hitters", "even_pools", "row_types",
                         "lengths", "plans", "tasks"});
    suite result;
    result.model = path(root_.at("model"));
    result.maps = paths(root_, "maps");
    const auto count = [](const json_cursor& from) {
      return from.integer<headwise::token_count>(1, headwise::max_length);
    };
    for_each_of(root_, "windows",
                [&](const json_cursor& window) { result.windows.push_back(count(window)); });
    for_each_of(root_, "even_pools",
                [&](const json_cursor& pool) { result.even_pools.push_back(count(pool)); });
    for_each_of(root_, "heavy_hitters", [&](const json_cursor& share) {
      result.heavy_hitters.push_back(share.real(1e-6, 1.0));
    });
    for_each_of(root_, "row_types", [&](const json_cursor& type) {
      result.row_types.push_back(one_of(type, cache_types));
    });
    if (result.row_types.empty()) result.row_types = {cache_type::f16};
    for_each_of(root_, "lengths", [&](const json_cursor& length) {
      result.lengths.push_back(length.integer<std::size_t>(2, headwise::max_length));
    });
    for_each_of(root_, "plans",
                [&](const json_cursor& plan) { result.plans.push_back(family(plan, result)); });
    for_each_of(root_, "tasks", [&](const json_cursor& one) { result.tasks.push_back(task(one)); });
    require_some(root_, "lengths", result.lengths);
    require_some(root_, "plans", result.plans);
    require_some(root_, "tasks", result.tasks);
    if (result.plans.front().kind != plan_kind::full)
      root_.at("plans")[0].at("kind").fail(error_code::malformed,
                                           "full first, which the others are measured against");
    return result;
  }

 private:
  [[nodiscard]] fs::path path(const json_cursor& from) const { return folder_ / from.text(); }

  [[nodiscard]] std::vector<fs::path> paths(const json_cursor& from, std::string_view name) const {
    std::vector<fs::path> all;
    for_each_of(from, name, [&](const json_cursor& one) { all.push_back(path(one)); });
    return all;
  }

  [[nodiscard]] std::string name(const json_cursor& from, std::set<std::string>& known) const {
    const std::string& text = from.at("name").text();
    if (text.empty() || !known.insert(text).second)
      from.at("name").fail(error_code::duplicate, "a name of its own");
    return text;
  }

  [[nodiscard]] plan_family family(const json_cursor& from, const suite& so_far) {
    plan_family plan;
    plan.name = name(from, plan_names_);
    plan.kind = one_of(from.at("kind"), plan_kinds);
    from.require_known({"name", "kind", "shares", "targets", "window", "seed", "file", "maps"});
    const bool by_target = is_by_target(plan.kind);
    require_used(from, to_string(plan.kind),
                 {{"shares", has_shares(plan.kind)},
                  {"targets", by_target},
                  {"window", has_window(plan.kind)},
                  {"seed", is_drawn(plan.kind)},
                  {"file", plan.kind == plan_kind::blueprint},
                  {"maps", needs_profile(plan.kind)}});
    const char* const levels = by_target ? "targets" : "shares";
    if (!by_target && !has_shares(plan.kind)) {
      plan.levels = {1.0};
    } else {
      static_cast<void>(from.at(levels));  // or it would be missed as an empty one
      for_each_of(from, levels, [&](const json_cursor& level) {
        plan.levels.push_back(level.real(by_target ? 0.0 : 1e-6, 1.0));
      });
      require_some(from, levels, plan.levels);
    }
    if (from.contains("window"))
      plan.window = from.at("window").integer<headwise::token_count>(1, headwise::max_length);
    if (from.contains("seed"))
      plan.seed =
          from.at("seed").integer<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
    if (plan.kind == plan_kind::blueprint) plan.file = path(from.at("file"));
    if (!needs_profile(plan.kind)) return plan;
    plan.maps = from.contains("maps") ? paths(from, "maps") : so_far.maps;
    if (plan.maps.empty())
      from.at("kind").fail(error_code::missing,
                           "'maps', of the plan or of the suite, which this plan is made from");
    return plan;
  }

  [[nodiscard]] task_options task(const json_cursor& from) {
    task_options options;
    options.name = name(from, task_names_);
    options.kind = one_of(from.at("kind"), task_kinds);
    from.require_known({"name", "kind", "text", "samples", "seed"});
    const bool is_text = options.kind == task_kind::text;
    require_used(from, to_string(options.kind), {{"text", is_text}, {"seed", !is_text}});
    if (is_text) options.text = path(from.at("text"));
    if (from.contains("samples"))
      options.samples = from.at("samples").integer<std::size_t>(1, 1'000'000);
    if (from.contains("seed"))
      options.seed =
          from.at("seed").integer<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
    return options;
  }

  const json_cursor& root_;
  fs::path folder_;
  std::set<std::string> plan_names_, task_names_;
};

}  // namespace

suite load_suite(const fs::path& path) {
  const headwise::mapped_file file(path);
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto value = headwise::detail::parse_json(text, path.string());
  const json_cursor root(value, path.string());
  return suite_reader(root, path.parent_path()).read();
}

}  // namespace headwise_tool
