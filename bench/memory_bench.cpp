// SPDX-License-Identifier: Apache-2.0
//
// How much memory does a sequence take beyond the rows that its newest query sees? Decoded token by
// token, so that rows are evicted (8 layers x 8 KV heads, head_dim 128, f16). One iteration decodes
// the whole text; the counter resident_over_ideal is all bytes that the memory resource gave out,
// to the manager and the sequence, over the payload of the rows seen.
#include "headwise/headwise.hpp"
#include "support/comparison.hpp"
#include "support/counted_memory.hpp"
#include "support/plans.hpp"
#include "support/row_table.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;
constexpr hw::model_shape shape{8, 8, 8, 128};
constexpr std::size_t row_bytes = 2 * hw::f16::row_bytes(shape.head_dim);

[[nodiscard]] double ideal_bytes(const std::vector<policy>& plan, hw::token_count length) {
  std::size_t rows = 0;
  for (const policy& head : plan) rows += rows_seen(head, length);
  return static_cast<double>(rows * row_bytes);
}

template <class Sequence>
void decode_token(Sequence& text, hw::rows<const float> key, hw::rows<const float> value) {
  auto step = text.try_append(token_at(text.length()));
  for (hw::head_id head; head.layer < shape.layers; ++head.layer)
    for (head.kv_head = 0; head.kv_head < shape.kv_heads; ++head.kv_head)
      step->write(head, key, value);
  std::move(*step).commit();
}

template <class Sequence>
[[nodiscard]] double bytes_shown(const Sequence& text) {
  std::size_t rows = 0;
  for (hw::head_id head; head.layer < shape.layers; ++head.layer)
    for (head.kv_head = 0; head.kv_head < shape.kv_heads; ++head.kv_head)
      text.head(head).for_each_slab(text.length() - 1, [&](const hw::slab& s) { rows += s.count; });
  return static_cast<double>(rows * row_bytes);
}

void decode_text(benchmark::State& state, const std::vector<policy>& plan, hw::token_count length) {
  const row_table keys(1, 1, 16, shape.head_dim), values(2, 1, 16, shape.head_dim);
  const double ideal = ideal_bytes(plan, length);
  double shown = 0.0, held = 0.0;
  hw::cache_stats stats;
  for (auto _ : state) {
    counted_memory memory;
    hw::cache_manager<> cache(shape, plan, {.memory = &memory});
    auto text = cache.open();
    for (hw::position pos = 0; pos < length; ++pos)
      decode_token(text, keys.view(0, pos % 16, 1), values.view(0, pos % 16, 1));
    shown = bytes_shown(text);
    held = static_cast<double>(memory.held_bytes());
    stats = text.stats();
  }
  compare_checksum(state, shown, ideal);
  state.counters["resident_over_ideal"] = held / ideal;
  state.counters["metadata"] = static_cast<double>(stats.metadata_bytes) / ideal;
  state.counters["reserved"] = static_cast<double>(stats.reserved_bytes) / ideal;
  state.counters["held"] = held;
}

// Every class of a blueprint by turns, in every layer.
[[nodiscard]] std::vector<policy> blueprint_plan() {
  std::vector<policy> plan;
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    for (const hw::token_count window : short_windows) plan.push_back(sinks_and_window(window));
    plan.push_back(sinks_and_punctuation());
    plan.push_back(hw::global{});
  }
  return plan;
}

void register_length(hw::token_count length) {
  const std::string case_name = "memory/" + std::to_string(length) + " tokens/";
  const auto add = [&](const std::string& variant, const std::vector<policy>& plan) {
    benchmark::RegisterBenchmark((case_name + variant).c_str(), [=](benchmark::State& state) {
      decode_text(state, plan, length);
    })->Unit(benchmark::kMillisecond);
  };
  const auto add_class = [&](const std::string& variant, const policy& head) {
    add(variant, std::vector<policy>(shape.heads(), head));
  };
  add("blueprint", blueprint_plan());
  for (const hw::token_count window : short_windows)
    add_class("window " + std::to_string(window), sinks_and_window(window));
  add_class("special", sinks_and_punctuation());
  add_class("global", hw::global{});
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  for (const headwise::token_count length : {2048U, 32768U})
    headwise_bench::register_length(length);
  return headwise_bench::run(argc, argv, "global");
}
