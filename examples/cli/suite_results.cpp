// SPDX-License-Identifier: Apache-2.0

#include "suite_results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "headwise/io/mapped_file.hpp"
#include "headwise/io/replacing_file.hpp"
#include "headwise/io/strict_json.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using headwise::detail::json_cursor;

constexpr std::string_view results_format = "headwise suite results";
constexpr std::uint64_t most_tokens = std::uint64_t{1} << 32;  // of one text

template <class Of>
double total(const suite_result& result, const Of& of) {
  double sum = 0.0;
  for (const exam_score& exam : result.exams) sum += static_cast<double>(of(exam));
  return sum;
}
double predicted(const suite_result& result) {
  return total(result, [](const exam_score& exam) { return exam.predicted; });
}

json exams_json(const suite_result& result) {
  json exams = json::array();
  for (const exam_score& exam : result.exams)
    exams.push_back({exam.surprise, exam.predicted, exam.correct});
  return exams;
}

double read_amount(const json_cursor& from) {
  return from.real(0.0, std::numeric_limits<double>::max());
}
double read_some(const json_cursor& from) {
  return from.real(std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
}
exam_score read_exam(const json_cursor& from) {
  if (from.size() != 3)
    from.fail(headwise::error_code::malformed, "[surprise, predicted, correct]");
  exam_score exam;
  exam.surprise = read_amount(from[0]);
  exam.predicted = from[1].integer<std::uint64_t>(1, most_tokens);
  exam.correct = from[2].integer<std::uint64_t>(0, exam.predicted);
  return exam;
}

suite_result read_result(const json_cursor& from) {
  from.require_known({"plan", "level", "task", "length", "rows", "key", "kept_rows",
                      "resident_bytes", "full_bytes", "end_bytes", "exams"});
  suite_result result;
  result.plan = from.at("plan").text();
  result.level = from.at("level").real(0.0, 1.0);
  result.task = from.at("task").text();
  result.length = from.at("length").integer<std::uint64_t>(1, most_tokens);
  result.rows = from.at("rows").text();
  result.key = from.at("key").text();
  result.kept_rows = read_amount(from.at("kept_rows"));
  result.resident_bytes = read_amount(from.at("resident_bytes"));
  result.full_bytes = read_some(from.at("full_bytes"));
  result.end_bytes = read_amount(from.at("end_bytes"));
  const json_cursor exams = from.at("exams");
  for (std::size_t i = 0; i < exams.size(); ++i) result.exams.push_back(read_exam(exams[i]));
  if (result.exams.empty()) exams.fail(headwise::error_code::missing, "at least one text");
  return result;
}

}  // namespace

double perplexity(const suite_result& result) {
  return std::exp(total(result, [](const exam_score& exam) { return exam.surprise; }) /
                  predicted(result));
}

double solved(const suite_result& result) {
  return total(result, [](const exam_score& e) { return e.correct == e.predicted ? 1.0 : 0.0; }) /
         static_cast<double>(result.exams.size());
}

double accuracy(const suite_result& result) {
  return total(result, [](const exam_score& exam) { return exam.correct; }) / predicted(result);
}

interval perplexity_change(const suite_result& result, const suite_result& full) {
  const auto change = [&](const auto& index) {
    double more = 0.0, tokens = 0.0;
    for (std::size_t i = 0; i < result.exams.size(); ++i) {
      const std::size_t text = index(i);
      more += result.exams[text].surprise - full.exams[text].surprise;
      tokens += static_cast<double>(full.exams[text].predicted);
    }
    return std::exp(more / tokens) - 1.0;
  };
  constexpr std::size_t draws = 2000;
  std::mt19937_64 random(1);
  std::vector<double> changes;
  for (std::size_t draw = 0; draw < draws; ++draw)
    changes.push_back(change([&](std::size_t) { return random() % result.exams.size(); }));
  std::sort(changes.begin(), changes.end());
  return {changes[draws / 40], change([](std::size_t i) { return i; }),
          changes[draws - 1 - draws / 40]};
}

void require_figures(const suite_result& result) {
  for (const exam_score& exam : result.exams)
    if (!std::isfinite(exam.surprise))
      headwise::raise(headwise::error_code::malformed,
                      "plan '" + result.plan + "', task '" + result.task + "', text " +
                          std::to_string(&exam - result.exams.data()),
                      "logits that are no numbers", "numbers");
}

std::vector<suite_result> load_results(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const headwise::mapped_file file(path);
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto value = headwise::detail::parse_json(text, path.string());
  const json_cursor root(value, path.string());
  if (root.at("format").text() != results_format)
    root.at("format").fail(headwise::error_code::malformed, std::string(results_format));
  std::vector<suite_result> results;
  const json_cursor list = root.at("results");
  for (std::size_t i = 0; i < list.size(); ++i) results.push_back(read_result(list[i]));
  return results;
}

void save_results(const fs::path& path, const std::vector<suite_result>& results) {
  json list = json::array();
  for (const suite_result& result : results)
    list.push_back({{"plan", result.plan},
                    {"level", result.level},
                    {"task", result.task},
                    {"length", result.length},
                    {"rows", result.rows},
                    {"key", result.key},
                    {"kept_rows", result.kept_rows},
                    {"resident_bytes", result.resident_bytes},
                    {"full_bytes", result.full_bytes},
                    {"end_bytes", result.end_bytes},
                    {"exams", exams_json(result)}});
  const json all = {{"format", results_format},
                    {"exams_are", "[surprise, predicted, correct]"},
                    {"results", list}};
  const std::string text = all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  headwise::replacing_file file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace headwise_tool
