// SPDX-License-Identifier: Apache-2.0

#include "evaluation_json.hpp"

#include <span>

#include <nlohmann/json.hpp>

#include "headwise/io/mapped_file.hpp"
#include "headwise/io/replacing_file.hpp"

namespace headwise_tool {
namespace {

using json = nlohmann::ordered_json;

json score_json(const plan_score& score) {
  return {{"perplexity", score.perplexity},         {"agreement", score.agreement},
          {"resident_bytes", score.resident_bytes}, {"payload_bytes", score.payload_bytes},
          {"peak_bytes", score.peak_bytes},         {"tokens_per_second", score.tokens_per_second}};
}

plan_score read_score(const json& from) {
  return {from.at("perplexity"),    from.at("agreement"),  from.at("resident_bytes"),
          from.at("payload_bytes"), from.at("peak_bytes"), from.at("tokens_per_second")};
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

blueprint_score read_point(const json& from) {
  blueprint_score point;
  point.recovery_target = from.at("recovery_target");
  point.blueprint = read_score(from.at("blueprint"));
  point.window = from.at("window");
  point.plain_window = read_score(from.at("plain_window"));
  point.sinks = from.at("sinks");
  point.window_behind_sinks = from.at("window_behind_sinks");
  point.sinks_and_window = read_score(from.at("sinks_and_window"));
  return point;
}

evaluation read_evaluation(const json& from) {
  evaluation result;
  result.model = from.at("model");
  result.shape = {from.at("layers"), from.at("query_heads"), from.at("kv_heads"),
                  from.at("head_dim")};
  result.cache = from.at("cache_type");
  result.text = from.at("text");
  result.tokens_profiled = from.at("tokens_profiled");
  result.tokens_evaluated = from.at("tokens_evaluated");
  result.window_tokens = from.at("window_tokens");
  result.full_bytes = from.at("full_bytes");
  result.full = read_score(from.at("full"));
  for (const json& point : from.at("curve")) result.scores.push_back(read_point(point));
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
  try {
    evaluation result = read_evaluation(json::parse(text));
    headwise::validate(result.shape, path.string());
    if (result.scores.empty())
      headwise::raise(headwise::error_code::missing, path.string() + ": /curve", "nothing",
                      "at least one blueprint's scores");
    return result;
  } catch (const json::exception& e) {
    headwise::raise(headwise::error_code::malformed, path.string(), e.what(),
                    "a file that 'headwise eval --json' wrote");
  }
}

}  // namespace headwise_tool
