// SPDX-License-Identifier: Apache-2.0

#include "suite_report.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>

#include "expected_bytes.hpp"
#include "head_map.hpp"
#include "markup.hpp"
#include "numbers.hpp"
#include "report_style.hpp"
#include "suite_chart.hpp"

namespace headwise_tool {
namespace {

// The results of one task at one length and row type, full first.
struct task_results {
  const task_options* task = nullptr;
  std::uint64_t length = 0;
  std::string rows;
  std::vector<const suite_result*> results;
  const suite_result* full = nullptr;  // in rows of the first type
};

std::vector<task_results> by_task(const suite& what, const suite_outcome& outcome) {
  std::vector<task_results> groups;
  for (const std::size_t length : what.lengths)
    for (const task_options& task : what.tasks)
      for (const cache_type type : what.row_types) {
        task_results group{&task, length, to_string(type), {}, nullptr};
        for (const suite_result& r : outcome.results)
          if (r.task == task.name && r.length == length && r.rows == group.rows)
            group.results.push_back(&r);
        if (group.results.empty()) continue;
        group.full = type == what.row_types.front() ? group.results.front() : groups.back().full;
        groups.push_back(std::move(group));
      }
  return groups;
}

std::string signed_percent(double share) {
  return (share < 0.0 ? "" : "+") + percent(share, 1);
}

const plan_family* family_of(const suite& what, const suite_result& result) {
  for (const plan_family& family : what.plans)
    if (family.name == result.plan) return &family;
  return nullptr;
}

std::string plan_name(const suite& what, const suite_result& result) {
  const plan_family* const family = family_of(what, result);
  if (family != nullptr && is_by_target(family->kind))
    return result.plan + ", target " + fixed(result.level, 3);
  const bool by_share = family != nullptr && has_shares(family->kind);
  return result.plan + (by_share ? ", " + percent(result.level, 0) : "");
}

// The plans that the others are also measured against, share by share: the first of its kind.
const plan_family* reference_of(const suite& what) {
  const auto found = std::find_if(what.plans.begin(), what.plans.end(),
                                  [](const plan_family& f) { return f.kind == plan_kind::budget; });
  return found == what.plans.end() ? nullptr : &*found;
}

// That plan with the share of a result; none for those without one.
const suite_result* beside(const suite& what, const task_results& group, const suite_result& r) {
  const plan_family* const reference = reference_of(what);
  const plan_family* const own = family_of(what, r);
  if (reference == nullptr || own == nullptr || own == reference || !has_shares(own->kind))
    return nullptr;
  for (const suite_result* const other : group.results)
    if (other->plan == reference->name && other->level == r.level) return other;
  return nullptr;
}

// Of one text there are none.
bool has_intervals(const task_results& group) {
  return group.task->kind == task_kind::text && group.full->exams.size() > 1;
}

std::string change_cell(const task_results& group, const interval& change) {
  const std::string value = signed_percent(change.value);
  if (!has_intervals(group)) return value;
  return value + " (" + signed_percent(change.low) + " to " + signed_percent(change.high) + ")";
}

// For each family of plans the fewest rows for which, and for more, the change from the full cache
// is as `passes` asks.
template <class Passes>
std::string fewest_rows(const suite& what, const task_results& group, const Passes& passes) {
  std::string out;
  for (const plan_family& family : what.plans) {
    std::vector<const suite_result*> own;
    for (const suite_result* const r : group.results)
      if (r->plan == family.name && family.kind != plan_kind::full) own.push_back(r);
    std::sort(own.begin(), own.end(),
              [](const auto* a, const auto* b) { return a->kept_rows > b->kept_rows; });
    const auto end = std::find_if_not(own.begin(), own.end(), [&](const suite_result* r) {
      return passes(perplexity_change(*r, *group.full));
    });
    if (end == own.begin()) continue;
    const suite_result& least = **std::prev(end);
    out += (out.empty() ? "" : "; ") + plan_name(what, least) + ": " + percent(least.kept_rows) +
           " of the rows, " + percent(least.end_bytes) + " of the bytes";
  }
  return out.empty() ? "none of these plans" : out;
}

// How far each family of plans gets; nothing for tasks that have no intervals.
std::vector<std::string> findings(const suite& what, const task_results& group) {
  if (!has_intervals(group)) return {};
  return {"No more than 1 % above the full cache, with the whole of the bracket: " +
              fewest_rows(what, group, [](const interval& c) { return c.high <= 0.01; }) + ".",
          "Not told from the full cache by these texts, since the bracket reaches 0: " +
              fewest_rows(what, group, [](const interval& c) { return c.low <= 0.0; }) + "."};
}

// The columns of a table: head and one row for each result.
std::vector<std::vector<std::string>> cells_of(const suite& what, const task_results& group) {
  const bool is_text = group.task->kind == task_kind::text;
  std::vector<std::vector<std::string>> lines;
  const plan_family* const reference = is_text ? reference_of(what) : nullptr;
  if (is_text)
    lines.push_back({"plan", "rows kept", "bytes at the end", "bytes on average", "perplexity",
                     "change", "next token"});
  else
    lines.push_back(
        {"plan", "rows kept", "bytes at the end", "bytes on average", "solved", "tokens right"});
  if (reference != nullptr) lines.front().push_back("beside " + reference->name);
  const suite_result& full = *group.full;
  const auto texts = static_cast<double>(full.exams.size());
  for (const suite_result* const r : group.results) {
    std::vector<std::string> line{plan_name(what, *r), percent(r->kept_rows), percent(r->end_bytes),
                                  percent(r->resident_bytes / r->full_bytes)};
    if (is_text) {
      line.push_back(fixed(perplexity(*r), 3));
      line.push_back(r == &full ? "" : change_cell(group, perplexity_change(*r, full)));
    } else {
      line.push_back(std::to_string(std::lround(solved(*r) * texts)) + " of " + fixed(texts, 0));
    }
    line.push_back(percent(accuracy(*r)));
    if (reference != nullptr) {
      const suite_result* const other = beside(what, group, *r);
      line.push_back(other == nullptr ? "" : change_cell(group, perplexity_change(*r, *other)));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string title_of(const task_results& group) {
  const std::size_t texts = group.full->exams.size();
  return group.task->name + ", " + counted(texts, "text") + " of " +
         counted(group.length, "token") + ", rows in " + group.rows;
}

std::string curve_of(const suite& what, const task_results& group) {
  const suite_result& full = *group.full;
  suite_chart chart;
  chart.is_change = group.task->kind == task_kind::text;
  for (const plan_family& family : what.plans) {
    chart_series series{family.name, {}};
    for (const suite_result* const r : group.results)
      if (r->plan == family.name)
        series.points.push_back(
            {r->kept_rows, chart.is_change ? perplexity(*r) / perplexity(full) - 1.0 : solved(*r),
             plan_name(what, *r)});
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return draw(chart, title_of(group));
}

std::string table_of(const suite& what, const task_results& group) {
  std::string out = "<div class=\"scroll\"><table>\n";
  bool head = true;
  for (const std::vector<std::string>& line : cells_of(what, group)) {
    out += head ? "<thead><tr>" : "<tr>";
    for (const std::string& entry : line) {
      const std::string tag = head || &entry == &line.front() ? "th" : "td";
      out += "<" + tag + ">" + escaped(entry) + "</" + tag + ">";
    }
    out += head ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
    head = false;
  }
  return out + "</tbody></table></div>\n";
}

std::string head_maps(const suite& what, const suite_outcome& outcome) {
  std::string out;
  for (const plan_family& family : what.plans) {
    if (!needs_profile(family.kind)) continue;
    const suite_plan* middle = nullptr;  // of the levels, at the last length
    std::size_t seen = 0;
    for (const suite_plan& plan : outcome.plans)
      if (plan.name == family.name && seen++ % family.levels.size() == family.levels.size() / 2)
        middle = &plan;
    if (middle == nullptr) continue;
    const cache_layout layout{middle->length, 1,
                              row_bytes(cache_type::f16, middle->plan.shape.head_dim)};
    out += "<h3>" + escaped(family.name + " " + fixed(middle->level, 3)) +
           "</h3>\n<section class=\"map\">" + head_map_svg(middle->plan, layout, nullptr) +
           "</section>\n";
  }
  return out.empty() ? out : "<section>\n<h2>What the heads keep</h2>\n" + out + "</section>\n";
}

}  // namespace

void print_suite(std::ostream& out, const suite& what, const suite_outcome& outcome) {
  for (const task_results& group : by_task(what, outcome)) {
    out << "\n### " << title_of(group) << "\n\n";
    bool head = true;
    for (const std::vector<std::string>& line : cells_of(what, group)) {
      for (const std::string& entry : line) out << "| " << entry << ' ';
      out << "|\n";
      if (std::exchange(head, false)) {
        for (std::size_t i = 0; i < line.size(); ++i) out << (i == 0 ? "|---" : "|---:");
        out << "|\n";
      }
    }
    for (const std::string& finding : findings(what, group)) out << '\n' << finding << '\n';
  }
}

std::string suite_page(const suite& what, const suite_outcome& outcome) {
  const std::string& named = outcome.plans.front().plan.model.name;
  const std::string model = named.empty() ? what.model.stem().string() : named;
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped(model) + ": quality</title>\n<style>" + std::string(report_style) +
      "</style>\n</head>\n<body>\n<main>\n<h1>" + escaped(model) +
      "</h1>\n<p>Rows kept: of a full cache, at the end of the texts. Bytes: all that the cache's "
      "memory resource gave out, of the keys and values of a dense f16 cache, at the end and on "
      "average over steps. Rows are dropped as the text goes by, so a question at the end was not "
      "in "
      "view when the cache let go of what it asks for. Brackets: the middle 95 % of 2,000 draws of "
      "as many texts with replacement, text by text: of the change, against the full cache with "
      "rows "
      "of the first type.</p>\n";
  for (const task_results& group : by_task(what, outcome)) {
    out += "<section>\n<h2>" + escaped(title_of(group)) + "</h2>\n" + curve_of(what, group);
    for (const std::string& finding : findings(what, group))
      out += "<p>" + escaped(finding) + "</p>\n";
    out += "<details><summary>Figures</summary>\n" + table_of(what, group) +
           "</details>\n</section>\n";
  }
  return out + head_maps(what, outcome) + "</main>\n</body>\n</html>\n";
}

}  // namespace headwise_tool
