// SPDX-License-Identifier: Apache-2.0
//
// How long does ggml take for the attention that headwise computes, over the same rows? One
// iteration is one token in all layers of a stack that is larger than any processor cache, 8 KV
// heads, one thread; flash attention on and off, keys and values in f16 and in f32.
#include "support/comparison.hpp"
#include "support/ggml_stack.hpp"
#include "support/headwise_layers.hpp"
#include "support/time_layers.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;

[[nodiscard]] std::size_t layers_of(const problem& p) {
  return problem::cold_layers(kv_heads * p.length * p.row_bytes<hw::f16>());
}

void time_headwise(benchmark::State& state, const problem& p) {
  const auto plan = all_global(p.shape(1));
  auto& cache = kept<headwise_layers<hw::f16>>(p.name(), "global_f16", p, plan, 1U);
  team alone(1);
  layer_attention attention(p, cache, alone);
  for (auto _ : state)
    for (std::size_t layer = 0; layer < layers_of(p); ++layer) attention.run(layer);
  attention.check(state);
  count_bytes(state, layers_of(p) * cache.layer_bytes());
}

// Where it may, ggml adds up in half precision.
template <class Codec>
void time_ggml(benchmark::State& state, const problem& p, const std::string& variant, bool flash) {
  auto& stack = kept<ggml_stack<Codec>>(p.name(), variant, p, layers_of(p), flash);
  for (auto _ : state) stack.run();
  constexpr double tolerance = 1e-2;
  compare_checksum(state, stack.checksum(), reference_checksum<hw::f32>(p, all_global(p.shape(1))),
                   tolerance);
  count_bytes(state, stack.bytes());
}

void register_problem(const problem& p) {
  const auto add = [&](const std::string& variant, auto fn) {
    benchmark::RegisterBenchmark(("ggml/" + p.name() + "/" + variant).c_str(), fn)
        ->Unit(benchmark::kMillisecond);
  };
  const auto add_ggml = [&]<class Codec>(const std::string& variant, bool flash, Codec) {
    add(variant, [=](benchmark::State& state) { time_ggml<Codec>(state, p, variant, flash); });
  };
  add("global_f16", [=](benchmark::State& state) { time_headwise(state, p); });
  add_ggml("fa_on_f16", true, hw::f16{});
  add_ggml("fa_on_f32", true, hw::f32{});
  add_ggml("fa_off_f16", false, hw::f16{});
  add_ggml("fa_off_f32", false, hw::f32{});
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  for (const headwise::token_count length : {2048U, 8192U})
    headwise_bench::register_problem({128, 4, length});
  return headwise_bench::run(argc, argv, "global_f16");
}
