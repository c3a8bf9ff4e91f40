// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to measure the recoveries of N candidates on recorded maps in f16? One
// iteration is one map [tokens, tokens] of one query head, the next of 128 MiB of them. The limit
// is to read the weights once; the baseline goes through them once for each candidate, as a simple
// profiler does. Maps of 4,096 tokens are larger than most last-level caches even one at a time.
#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "headwise/headwise.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/comparison.hpp"
#include "support/kept.hpp"
#include "support/layer_problem.hpp"
#include "support/stream.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;
constexpr std::uint32_t query_heads = 8;

// A prompt's maps: more weight on the nearest keys, the rest at random; rows sum to one.
class recorded_prompt {
 public:
  explicit recorded_prompt(std::size_t token_total)
      : layers_(static_cast<std::uint32_t>(
            cold_bytes() / (query_heads * token_total * token_total * sizeof(std::uint16_t)) + 1)) {
    for (hw::position pos = 0; pos < token_total; ++pos)
      tokens_.push_back({pos, static_cast<std::int32_t>(pos * 37 % 500),
                         pos < 4        ? hw::token_classes::sink
                         : pos % 8 == 0 ? hw::token_classes::punctuation
                                        : hw::token_classes::none});
    std::minstd_rand random(1);
    bytes_.resize(maps() * map_bytes());
    std::vector<float> weights(token_total);
    for (std::size_t row = 0; row < maps() * token_total; ++row) {
      std::fill(weights.begin(), weights.end(), 0.0F);
      const std::size_t query = row % token_total;
      double sum = 0.0;
      for (std::size_t key = 0; key <= query; ++key) {
        weights[key] = static_cast<float>(random() % 1000) / (query - key < 64 ? 100.0F : 1000.0F);
        sum += double{weights[key]};
      }
      if (sum == 0.0) weights[query] = 1.0F, sum = 1.0;
      for (std::size_t key = 0; key <= query; ++key) weights[key] /= static_cast<float>(sum);
      hw::f16::encode(weights, bytes_.data() + row * hw::f16::row_bytes(token_total));
    }
  }

  [[nodiscard]] hw::model_shape shape() const { return {layers_, query_heads, query_heads, 64}; }
  [[nodiscard]] std::size_t maps() const { return std::size_t{layers_} * query_heads; }
  [[nodiscard]] std::size_t map_bytes() const {
    return hw::f16::row_bytes(tokens_.size()) * tokens_.size();
  }
  [[nodiscard]] const std::vector<hw::token>& tokens() const { return tokens_; }
  // The maps over and over, each round as a prompt of its own.
  [[nodiscard]] hw::attention_map_view map(std::size_t i) const {
    const std::size_t n = tokens_.size(), at = i % maps();
    hw::attention_map_view view;
    view.prompt = i / maps();
    view.layer = static_cast<std::uint32_t>(at / query_heads);
    view.query_head = static_cast<std::uint32_t>(at % query_heads);
    view.weights = {hw::weight_type::f16, bytes_.data() + at * map_bytes(), n, n};
    view.keys = tokens_;
    return view;
  }

 private:
  std::uint32_t layers_;
  std::vector<hw::token> tokens_;
  std::vector<std::byte> bytes_;  // [maps, tokens, tokens] weights
};
[[nodiscard]] const recorded_prompt& prompt_of(std::size_t token_total) {
  return kept<recorded_prompt>(std::to_string(token_total), "maps", token_total);
}

[[nodiscard]] hw::measure_options only_global() {
  hw::measure_options options;
  options.use_ladder = false;
  return options;
}
[[nodiscard]] hw::measure_options ladder(bool learn_ids) {
  hw::measure_options options;
  options.ladder.learn_ids = learn_ids;
  return options;
}
// Two without a window, two for each of six windows, one of its own, and global.
[[nodiscard]] hw::measure_options sixteen() {
  hw::measure_options options = ladder(false);
  options.ladder.windows = {16, 32, 64, 128, 256, 512};
  options.candidates = {{"local(1024)", hw::make_spec(hw::local_window(1024)), false}};
  return options;
}

// [candidates][keys]
[[nodiscard]] std::vector<std::vector<hw::token_count>> lifetimes(
    const hw::measure_options& options, const std::vector<hw::token>& tokens) {
  std::vector<hw::candidate> candidates{{"global", hw::make_spec(hw::global{})}};
  if (options.use_ladder)
    candidates = hw::make_ladder(options.ladder, static_cast<hw::token_count>(tokens.size()));
  candidates.insert(candidates.end(), options.candidates.begin(), options.candidates.end());
  std::vector<std::vector<hw::token_count>> result;
  for (const hw::candidate& c : candidates) {
    const auto policy = hw::make_policy(c.policy);
    result.emplace_back();
    for (const hw::token& t : tokens) result.back().push_back(hw::lifetime_of(policy, t));
  }
  return result;
}

// The sum of the candidates' recoveries on one map, turned into floats once: one candidate and one
// weight after the other.
[[nodiscard]] double simple_recoveries(
    const hw::attention_map_view& map,
    const std::vector<std::vector<hw::token_count>>& candidate_lifetimes) {
  const std::size_t keys = map.weights.width;
  std::vector<float> weights(map.weights.count * keys);
  for (std::size_t query = 0; query < map.weights.count; ++query)
    map.weights.copy_row(query, std::span(weights).subspan(query * keys, keys));
  double recoveries = 0.0;
  for (const auto& lifetime : candidate_lifetimes) {
    double kept = 0.0;
    for (hw::position query = 0; query < map.weights.count; ++query)
      for (hw::position key = 0; key <= query; ++key)
        if (hw::sees(query, key, lifetime[key])) kept += double{weights[query * keys + key]};
    recoveries += kept / static_cast<double>(map.weights.count);
  }
  return recoveries;
}

void simple_profile(benchmark::State& state, std::size_t token_total) {
  const recorded_prompt& prompt = prompt_of(token_total);
  const auto candidate_lifetimes = lifetimes(ladder(false), prompt.tokens());
  std::size_t next = 0;
  double first = 0.0;
  for (auto _ : state) {
    double recoveries = simple_recoveries(prompt.map(next), candidate_lifetimes);
    benchmark::DoNotOptimize(recoveries);
    if (next++ == 0) first = recoveries;
  }
  compare_checksum(state, first, simple_recoveries(prompt.map(0), candidate_lifetimes));
  count_bytes(state, prompt.map_bytes());
  state.counters["candidates"] = static_cast<double>(candidate_lifetimes.size());
}

void headwise_profile(benchmark::State& state, std::size_t token_total,
                      const hw::measure_options& options) {
  const recorded_prompt& prompt = prompt_of(token_total);
  hw::profiler<> profiler(prompt.shape(), {.sink_count = 4, .classes = {}}, options);
  std::size_t next = 0;
  for (auto _ : state) profiler.add(prompt.map(next++));

  double recoveries = 0.0;
  for (std::size_t c = 0; c < profiler.candidates().size(); ++c)
    recoveries += profiler.sums().table.recovery(0, 0, c);
  compare_checksum(state, recoveries,
                   simple_recoveries(prompt.map(0), lifetimes(options, prompt.tokens())));
  count_bytes(state, prompt.map_bytes());
  state.counters["candidates"] = static_cast<double>(profiler.candidates().size());
}

// Reads each map once.
void stream(benchmark::State& state, std::size_t token_total) {
  const recorded_prompt& prompt = prompt_of(token_total);
  const auto bytes_of = [&](std::size_t i) {
    return words(reinterpret_cast<const std::uint64_t*>(prompt.map(i).weights.data),
                 prompt.map_bytes() / sizeof(std::uint64_t));
  };
  std::size_t next = 0;
  std::uint64_t sum = 0;
  for (auto _ : state) {
    sum = sum_of(bytes_of(next++));
    benchmark::DoNotOptimize(sum);
  }
  compare_checksum(state, static_cast<double>(sum),
                   static_cast<double>(sum_in_order(bytes_of(next - 1))));
  count_bytes(state, prompt.map_bytes());
}

void register_case(std::size_t token_total) {
  const auto add = [&](const char* variant, std::function<void(benchmark::State&)> fn) {
    const std::string name = "profile/" + std::to_string(token_total) + " tokens/" + variant;
    benchmark::RegisterBenchmark(name.c_str(), std::move(fn))->Unit(benchmark::kMicrosecond);
  };
  add("simple, ladder", [=](auto& state) { simple_profile(state, token_total); });
  add("16 candidates", [=](auto& state) { headwise_profile(state, token_total, sixteen()); });
  add("ladder", [=](auto& state) { headwise_profile(state, token_total, ladder(false)); });
  add("ladder+learned", [=](auto& state) { headwise_profile(state, token_total, ladder(true)); });
  add("global", [=](auto& state) { headwise_profile(state, token_total, only_global()); });
  add("stream", [=](auto& state) { stream(state, token_total); });
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  for (const std::size_t token_total : {512U, 1024U, 4096U})
    headwise_bench::register_case(token_total);
  return headwise_bench::run(argc, argv, "simple, ladder");
}
