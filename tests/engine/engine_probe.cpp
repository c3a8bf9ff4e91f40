// SPDX-License-Identifier: Apache-2.0
//
// The small engine for scripts that compare it with another one (compare_llama_cpp.py). Prints
// JSON.
//
//   engine_probe tokens MODEL TEXT_FILE    the ids of a text, no beginning-of-sequence token
//   engine_probe score MODEL CODEC         CODEC: f32, f16, bf16, int8_row, int4_group, or
//                                          int8_row+int4_group for keys and values; stdin:
//                                          {"sequences": [[id, ...], ...]}, each fed to an empty
//                                          cache with global on every head. For each one:
//     "nll"     [n - 1]  -log p(token i + 1 | tokens 0 .. i)
//     "best"    [n]      the likeliest token after token i
//     "behind"  [n - 1]  logit of best[i] minus logit of token i + 1

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "llama/sampler.hpp"
#include "llama/session.hpp"

namespace {

using nlohmann::json;

json tokens_of(const std::string& model_path, const std::string& text_path) {
  std::ifstream in(text_path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + text_path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const llama_example::tokenizer tokens{llama_example::gguf_file(model_path)};
  return {{"ids", tokens.encode(text, {.bos = false, .special_tokens = false})}};
}

double log_sum_exp(std::span<const float> logits) {
  const double top = double{*std::max_element(logits.begin(), logits.end())};
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(double{logit} - top);
  return top + std::log(sum);
}

template <class Key, class Value>
json score(const llama_example::model& weights, const std::vector<std::int32_t>& ids) {
  const auto plan =
      headwise::uniform_blueprint(weights.shape(), headwise::make_spec(headwise::global{}));
  llama_example::session<Key, Value> text(
      weights, plan, {.capacity = static_cast<headwise::token_count>(ids.size())});
  json nll = json::array(), best = json::array(), behind = json::array();
  text.feed(ids, [&](headwise::position first, llama_example::rows<const float> logits) {
    for (std::size_t i = 0; i < logits.count; ++i) {
      const auto likeliest = llama_example::greedy(logits[i]);
      best.push_back(likeliest);
      if (first + i + 1 == ids.size()) break;
      const float next = logits[i][static_cast<std::size_t>(ids[first + i + 1])];
      nll.push_back(log_sum_exp(logits[i]) - double{next});
      behind.push_back(logits[i][static_cast<std::size_t>(likeliest)] - next);
    }
  });
  return {{"nll", nll}, {"best", best}, {"behind", behind}};
}

struct scorer {
  std::string codec;
  json (*score)(const llama_example::model& weights, const std::vector<std::int32_t>& ids);
};
template <class Key, class Value = Key>
scorer scorer_of() {
  std::string name(Key::name);
  if (Key::name != Value::name) name.append("+").append(Value::name);
  return {name, score<Key, Value>};
}

json score_all(const std::string& model_path, const std::string& codec) {
  using namespace headwise;
  for (const scorer& known :
       {scorer_of<f32>(), scorer_of<f16>(), scorer_of<bf16>(), scorer_of<int8_row>(),
        scorer_of<int4_group>(), scorer_of<int8_row, int4_group>()}) {
    if (known.codec != codec) continue;
    const llama_example::model weights(model_path);
    json results = json::array();
    const json given = json::parse(std::cin);
    for (const json& ids : given.at("sequences")) results.push_back(known.score(weights, ids));
    return {{"sequences", results}};
  }
  throw std::runtime_error("no codec " + codec);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() == 3 && arguments[0] == "tokens") {
      std::cout << tokens_of(arguments[1], arguments[2]) << "\n";
    } else if (arguments.size() == 3 && arguments[0] == "score") {
      std::cout << score_all(arguments[1], arguments[2]) << "\n";
    } else {
      std::cerr << "usage: engine_probe tokens MODEL TEXT_FILE | score MODEL CODEC < sequences\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << "engine_probe: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
