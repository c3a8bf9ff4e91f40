// SPDX-License-Identifier: Apache-2.0
//
// 06: from attention maps to a cache. The profiler looks once at what each head attended to, picks
// the cheapest policy that keeps 95 % of it, and the choice is a JSON file that ships with a model.
#include <cstdio>
#include <filesystem>

#include "headwise/headwise.hpp"
#include "headwise/io/blueprint_json.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/claims.hpp"

namespace hw = headwise;

constexpr hw::model_shape model{.layers = 1, .query_heads = 8, .kv_heads = 4, .head_dim = 32};
constexpr std::int32_t full_stop = 7, vocab_size = 64;

// A map_source: here a pretend model whose heads are of four kinds; a real engine hands out what
// its softmax computed, or reads a file of recorded maps with io/map_archive.hpp.
class recorder {
 public:
  explicit recorder(std::vector<hw::token> prompt)
      : prompt_(std::move(prompt)), weights_(prompt_.size() * prompt_.size()) {}

  hw::model_shape shape() const { return model; }
  std::optional<hw::attention_map_view> next() {
    if (head_ == model.query_heads) return std::nullopt;
    const std::size_t n = prompt_.size();
    for (hw::position query = 0; query < n; ++query) {
      double sum = 0.0;
      for (hw::position key = 0; key <= query; ++key) sum += attraction(query, prompt_[key]);
      for (hw::position key = 0; key <= query; ++key)
        weights_[query * n + key] = static_cast<float>(attraction(query, prompt_[key]) / sum);
    }
    hw::attention_map_view map;
    map.query_head = head_++;
    map.weights = {weights_.data(), n, n};
    map.keys = prompt_;
    map.place = "the pretend model";
    return map;
  }

 private:
  // Not normalised.
  double attraction(hw::position query, const hw::token& key) const {
    const double near = query - key.pos < 24 ? 1.0 : 1e-5;
    switch (head_) {
      case 2:
      case 3:  // KV head 1: the first tokens draw most
        return near + (any(key.classes & hw::token_classes::sink) ? 50.0 : 0.0);
      case 4:  // KV head 2: only one of its two query heads looks far back
        return 1.0;
      case 6:
      case 7:  // KV head 3: full stops
        return near + (key.id == full_stop ? 5.0 : 0.0);
      default:
        return near;
    }
  }

  std::vector<hw::token> prompt_;
  std::vector<float> weights_;  // [queries, keys]
  std::uint32_t head_ = 0;
};

int main() {
  const hw::token_rules rules{
      .sink_count = 4, .classes = {{"punctuation", hw::token_classes::punctuation, {full_stop}}}};
  std::vector<std::int32_t> ids(400);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = i % 16 == 15 ? full_stop : static_cast<std::int32_t>(8 + i % 50);
  const auto prompt = hw::make_classifier(rules, vocab_size).tokens(ids);

  recorder maps(prompt);
  const hw::blueprint measured =
      hw::profile(maps, rules, {.name = "pretend", .vocab_size = vocab_size, .tokenizer = ""});
  const auto path = std::filesystem::temp_directory_path() / "headwise_example_06.json";
  hw::save_blueprint(path, measured);
  const hw::blueprint plan = hw::load_blueprint(path);
  std::filesystem::remove(path);
  for (std::uint32_t head = 0; head < model.kv_heads; ++head) {
    const hw::head_plan& chosen = plan.head({0, head});
    std::printf("KV head %u: %-32s keeps %5.1f %% of attention in %5.1f %% of the rows\n", head,
                chosen.name.c_str(), 100.0 * chosen.recovery, 100.0 * chosen.resident_fraction);
  }

  hw::require_match(plan, model, {.name = "pretend", .vocab_size = vocab_size, .tokenizer = ""});
  hw::cache_manager<> cache(plan, {});
  auto text = cache.open();
  auto step = text.try_append(prompt, hw::attend_scope::last_query);
  if (!step) return 1;
  const std::vector<float> row_data(prompt.size() * model.head_dim);
  const hw::rows<const float> rows(row_data.data(), prompt.size(), model.head_dim);
  for (std::uint32_t head = 0; head < model.kv_heads; ++head) step->write({0, head}, rows, rows);
  std::move(*step).commit();

  claims claims;
  double expected_rows = 0.0, worst = 1.0;
  for (const hw::head_plan& head : plan.heads) {
    expected_rows += head.resident_fraction * static_cast<double>(prompt.size());
    worst = std::min(worst, head.recovery);
  }
  claims.check(plan == measured, "a blueprint that was saved and loaded is the same blueprint");
  claims.check(worst >= 0.95, "every head keeps at least 95 % of its attention");
  claims.check(
      plan.head({0, 2}).resident_fraction > 0.7 && plan.head({0, 0}).resident_fraction < 0.1,
      "one far-sighted query head is enough: its KV head keeps what that one needs");
  claims.check(std::abs(static_cast<double>(text.stats().resident_rows) - expected_rows) < 1e-6,
               "the cache holds the rows that the profile promised");
  return claims.exit_code();
}
