// SPDX-License-Identifier: Apache-2.0

#include "evaluation_json.hpp"

#include <concepts>
#include <limits>
#include <span>

#include <nlohmann/json.hpp>

#include "headwise/io/mapped_file.hpp"
#include "headwise/io/replacing_file.hpp"
#include "headwise/io/strict_json.hpp"

namespace headwise_tool {
namespace {

using json = nlohmann::ordered_json;
using headwise::detail::json_cursor;

template <std::unsigned_integral T>
[[nodiscard]] T count(const json_cursor& from, const char* name, T low = 0) {
  return from.at(name).integer<T>(low, std::numeric_limits<T>::max());
}

json score_json(const plan_score& score) {
  return {{"perplexity", score.perplexity},         {"agreement", score.agreement},
          {"resident_bytes", score.resident_bytes}, {"payload_bytes", score.payload_bytes},
          {"peak_bytes", score.peak_bytes},         {"tokens_per_second", score.tokens_per_second}};
}

constexpr double most = std::numeric_limits<double>::max();

plan_score read_score(const json_cursor& from) {
  const auto amount = [&](const char* name) { return from.at(name).real(0, most); };
  plan_score score;
  score.perplexity = from.at("perplexity").real(1, most);
  score.agreement = from.at("agreement").real(0, 1);
  score.resident_bytes = amount("resident_bytes");
  score.payload_bytes = amount("payload_bytes");
  score.peak_bytes = count<std::uint64_t>(from, "peak_bytes");
  score.tokens_per_second = amount("tokens_per_second");
  return score;
}

json curve_json(const evaluation& result) {
  json curve = json::array();
  for (const blueprint_score& at : result.scores)
    curve.push_back({{"recovery_target", at.recovery_target},
                     {"kept_ratio", at.blueprint.resident_bytes / result.full_bytes},
                     {"blueprint", score_json(at.blueprint)},
                     {"window", at.window},
                     {"plain_window", score_json(at.plain_window)},
                     {"sinks", at.sinks},
                     {"window_behind_sinks", at.window_behind_sinks},
                     {"sinks_and_window", score_json(at.sinks_and_window)}});
  return curve;
}

blueprint_score read_point(const json_cursor& from) {
  blueprint_score point;
  point.recovery_target = from.at("recovery_target").real(0, 1);
  point.blueprint = read_score(from.at("blueprint"));
  point.window = count<headwise::token_count>(from, "window");
  point.plain_window = read_score(from.at("plain_window"));
  point.sinks = count<headwise::token_count>(from, "sinks");
  point.window_behind_sinks = count<headwise::token_count>(from, "window_behind_sinks");
  point.sinks_and_window = read_score(from.at("sinks_and_window"));
  return point;
}

evaluation read_evaluation(const json_cursor& from) {
  evaluation result;
  result.model = from.at("model").text();
  const auto size = [&](const char* name) { return count<std::uint32_t>(from, name, 1); };
  result.shape = {size("layers"), size("query_heads"), size("kv_heads"), size("head_dim")};
  headwise::validate(result.shape, from.place());
  result.cache = from.at("cache_type").text();
  result.text = from.at("text").text();
  result.tokens_profiled = count<std::uint64_t>(from, "tokens_profiled");
  result.tokens_evaluated = count<std::uint64_t>(from, "tokens_evaluated");
  result.window_tokens = count<std::uint64_t>(from, "window_tokens");
  result.full_bytes = from.at("full_bytes").real(1, most);  // what all shares are of
  result.full = read_score(from.at("full"));
  const json_cursor curve = from.at("curve");
  for (std::size_t i = 0; i < curve.size(); ++i) result.scores.push_back(read_point(curve[i]));
  if (result.scores.empty()) curve.fail(headwise::error_code::missing, "one blueprint's scores");
  return result;
}

}  // namespace

void save_evaluation(const std::filesystem::path& path, const evaluation& result) {
  const blueprint_score& main = result.scores.front();
  const json summary = {
      {"model", result.model},
      {"layers", result.shape.layers},
      {"query_heads", result.shape.query_heads},
      {"kv_heads", result.shape.kv_heads},
      {"head_dim", result.shape.head_dim},
      {"cache_type", result.cache},
      {"text", result.text},
      {"tokens_profiled", result.tokens_profiled},
      {"tokens_evaluated", result.tokens_evaluated},
      {"window_tokens", result.window_tokens},
      {"bytes_are", "means over positions, read after every " + std::to_string(step_tokens) +
                        " tokens; resident: all that the cache's memory resource held; full: the "
                        "keys and values of a dense cache"},
      {"recovery_target", main.recovery_target},
      {"full_bytes", result.full_bytes},
      {"resident_bytes", main.blueprint.resident_bytes},
      {"kept_ratio", main.blueprint.resident_bytes / result.full_bytes},
      {"perplexity_full", result.full.perplexity},
      {"perplexity_blueprint", main.blueprint.perplexity},
      {"perplexity_window_same_bytes", main.plain_window.perplexity},
      {"perplexity_sinks_and_window_same_bytes", main.sinks_and_window.perplexity},
      {"agreement", main.blueprint.agreement},
      {"full", score_json(result.full)},
      {"curve", curve_json(result)}};
  const std::string text = summary.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  headwise::replacing_file file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

evaluation load_evaluation(const std::filesystem::path& path) {
  const headwise::mapped_file file(path);
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto root = headwise::detail::parse_json(text, path.string());
  return read_evaluation(json_cursor(root, path.string()));
}

}  // namespace headwise_tool
