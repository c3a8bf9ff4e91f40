// SPDX-License-Identifier: Apache-2.0
//
// 07: a plan for one prompt, as in the FastGen paper. The prompt is attended with every row at
// hand; then its own attention is profiled, and a second sequence takes over the rows that this
// plan keeps. What the plan drops is gone, what it keeps is the same bits.
#include <array>
#include <cmath>
#include <cstdio>

#include "headwise/headwise.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/claims.hpp"

namespace hw = headwise;

constexpr hw::model_shape model{.layers = 1, .query_heads = 4, .kv_heads = 4, .head_dim = 32};
constexpr hw::token_count prompt_length = 400, length = 440;
constexpr std::int32_t full_stop = 7;
constexpr float scale = 1.0F;

// Heads with an eye for something: keys say where and what a token is, queries ask for it.
// 0: what is near. 1: what is near, and the first tokens. 2: full stops. 3: what is near, and a few
// tokens that nothing but the attention which they draw tells apart.
class seeing_heads {
 public:
  using row = std::array<float, model.head_dim>;

  row key(const hw::token& t) const {
    row k{};
    for (std::size_t i = 0; i < waves; ++i) {
      const double angle = t.pos * std::pow(0.02, static_cast<double>(i) / waves);
      k[2 * i] = static_cast<float>(std::cos(angle));
      k[2 * i + 1] = static_cast<float>(std::sin(angle));
    }
    k[first_feature] = any(t.classes & hw::token_classes::sink) ? 1.0F : 0.0F;
    k[stop_feature] = t.id == full_stop ? 1.0F : 0.0F;
    k[striking_feature] = t.pos % 41 == 20 ? 1.0F : 0.0F;
    return k;
  }
  row query(std::uint32_t head, const hw::token& t) const {
    row q = key(t);
    for (float& x : q) x *= head == 2 ? 0.0F : 1.5F;
    q[first_feature] = head == 1 ? 18.0F : 0.0F;
    q[stop_feature] = head == 2 ? 12.0F : 0.0F;
    q[striking_feature] = head == 3 ? 20.0F : 0.0F;
    return q;
  }
  row value(const hw::token& t) const {
    row v{};
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(t.pos * (i + 1)));
    return v;
  }
  // The probabilities of a query over the tokens up to its own.
  std::vector<double> attention(std::uint32_t head, std::span<const hw::token> tokens,
                                hw::position at) const {
    const row q = query(head, tokens[at]);
    std::vector<double> weights;
    double sum = 0.0;
    for (hw::position pos = 0; pos <= at; ++pos) {
      const row k = key(tokens[pos]);
      double logit = 0.0;
      for (std::size_t i = 0; i < k.size(); ++i) logit += double{q[i]} * double{k[i]};
      weights.push_back(std::exp(logit * scale));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }
  // What each token of the prompt drew of it, over all its queries.
  std::vector<float> column_sums(std::uint32_t head, std::span<const hw::token> prompt) const {
    std::vector<float> sums(prompt.size());
    for (const hw::token& query : prompt) {
      const auto weights = attention(head, prompt, query.pos);
      for (std::size_t i = 0; i < weights.size(); ++i) sums[i] += static_cast<float>(weights[i]);
    }
    return sums;
  }

 private:
  static constexpr std::size_t waves = 14, first_feature = 2 * waves,
                               stop_feature = first_feature + 1,
                               striking_feature = first_feature + 2;
};

// The attention of the prompt as the engine computed it, one map a query head: a map_source.
class recorder {
 public:
  recorder(const seeing_heads& heads, std::span<const hw::token> prompt)
      : heads_(heads), prompt_(prompt), weights_(prompt.size() * prompt.size()) {}

  hw::model_shape shape() const { return model; }
  std::optional<hw::attention_map_view> next() {
    if (head_ == model.query_heads) return std::nullopt;
    const std::size_t n = prompt_.size();
    std::fill(weights_.begin(), weights_.end(), 0.0F);
    for (hw::position query = 0; query < n; ++query) {
      const auto row = heads_.attention(head_, prompt_, query);
      std::transform(row.begin(), row.end(), weights_.begin() + static_cast<long>(query * n),
                     [](double weight) { return static_cast<float>(weight); });
    }
    hw::attention_map_view map;
    map.query_head = head_++;
    map.weights = {weights_.data(), n, n};
    map.keys = prompt_;
    map.place = "this prompt";
    return map;
  }

 private:
  const seeing_heads& heads_;
  std::span<const hw::token> prompt_;
  std::vector<float> weights_;  // [queries, keys]
  std::uint32_t head_ = 0;
};

int main() {
  const hw::token_rules rules{
      .sink_count = 4, .classes = {{"punctuation", hw::token_classes::punctuation, {full_stop}}}};
  std::vector<std::int32_t> ids(length, 8);
  for (std::size_t i = 15; i < ids.size(); i += 16) ids[i] = full_stop;
  const auto tokens = hw::make_classifier(rules, 64).tokens(ids);
  const std::span prompt(tokens.data(), prompt_length);
  const seeing_heads heads;
  claims claims;

  // The prompt with every row at hand.
  hw::cache_manager<> cache(hw::uniform_blueprint(model, hw::make_spec(hw::global{})), {});
  auto whole = cache.open();
  {
    std::vector<float> keys, values;
    for (const hw::token& t : prompt) {
      const auto k = heads.key(t), v = heads.value(t);
      keys.insert(keys.end(), k.begin(), k.end());
      values.insert(values.end(), v.begin(), v.end());
    }
    auto step = whole.try_append(prompt);
    if (!step) return 1;
    const hw::rows<const float> k(keys.data(), prompt.size(), model.head_dim);
    const hw::rows<const float> v(values.data(), prompt.size(), model.head_dim);
    for (std::uint32_t head = 0; head < model.kv_heads; ++head) step->write({0, head}, k, v);
    std::move(*step).commit();
  }
  const std::size_t full_rows = whole.stats().resident_rows;
  const std::size_t full_pages = cache.stats().pages_in_use;

  // Its own plan, and the rows that this plan keeps.
  recorder maps(heads, prompt);
  hw::profile_options options;
  options.measure.ladder.heavy_hitters = {0.05};
  const hw::blueprint plan = hw::profile(maps, rules, {}, options);
  auto text = cache.open(plan);
  {
    auto step = text.try_append(prompt, hw::attend_scope::last_query);
    if (!step) return 1;
    for (std::uint32_t head = 0; head < model.kv_heads; ++head) {
      if (hw::pool_rows_of(text.plan()[head], prompt_length) > 0)
        step->observe_prompt({0, head}, heads.column_sums(head, prompt));
      step->write({0, head}, whole.head({0, head}));
    }
    std::move(*step).commit();
  }
  whole = cache.open();  // closes the other, whose pages go back
  for (std::uint32_t head = 0; head < model.kv_heads; ++head)
    std::printf("head %u: %-44s keeps %5.1f %% of its attention in %5.1f %% of the rows\n", head,
                plan.head({0, head}).name.c_str(), 100.0 * plan.head({0, head}).recovery,
                100.0 * plan.head({0, head}).resident_fraction);
  claims.check(text.stats().resident_rows < full_rows / 2,
               "the plan keeps less than half the rows");
  claims.check(cache.stats().pages_in_use < full_pages, "the pages of the whole prompt went back");

  // And on, token by token.
  hw::attend_scratch scratch(1, model.head_dim, length);
  std::array<float, model.head_dim> out{};
  double worst = 0.0;
  while (text.length() < length) {
    const hw::token& t = tokens[text.length()];
    auto step = text.try_append(t);
    if (!step) return 1;
    for (std::uint32_t head = 0; head < model.kv_heads; ++head) {
      const auto k = heads.key(t), v = heads.value(t), q = heads.query(head, t);
      step->write({0, head}, {k.data(), 1, model.head_dim}, {v.data(), 1, model.head_dim});
      hw::attend(step->head({0, head}), t.pos, {q.data(), 1, model.head_dim}, scale,
                 {out.data(), 1, model.head_dim}, {}, scratch);
      const auto weights = heads.attention(head, tokens, t.pos);
      for (std::size_t i = 0; i < out.size(); ++i) {
        double full = 0.0;
        for (hw::position pos = 0; pos <= t.pos; ++pos)
          full += weights[pos] * double{heads.value(tokens[pos])[i]};
        worst = std::max(worst, std::abs(double{out[i]} - full));
      }
    }
    std::move(*step).commit();
  }
  std::printf("largest difference to attention over every row: %.3f\n", worst);
  claims.check(worst < 0.1, "what the heads read is what they read out of the whole prompt");
  return claims.exit_code();
}
