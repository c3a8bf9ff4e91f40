// SPDX-License-Identifier: Apache-2.0
//
// What does a decode step cost over a whole stack of layers (32 layers x 8 KV heads, group 4,
// head_dim 128), when heads keep less, and what of it is bookkeeping? One iteration is one token:
// try_append; write and attend of every head, layer after layer; commit.
#include "support/comparison.hpp"
#include "support/decode_stack.hpp"

namespace headwise_bench {
namespace {

void time_steps(benchmark::State& state, decode_stack& stack) {
  double bookkeeping = 0.0;
  const auto begin = decode_stack::clock::now();
  decode_stack::clock::duration paused{};
  for (auto _ : state) {
    if (stack.is_spent()) {
      state.PauseTiming();
      const auto pause = decode_stack::clock::now();
      stack.start_over();
      paused += decode_stack::clock::now() - pause;
      state.ResumeTiming();
    }
    bookkeeping += std::chrono::duration<double>(stack.step()).count();
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> all = decode_stack::clock::now() - begin - paused;
  compare_checksum(state, stack.checksum(), stack.expected());
  state.counters["bookkeeping_fraction"] = bookkeeping / all.count();
  state.counters["kept"] = stack.stats().kept_ratio();
  state.counters["held"] = static_cast<double>(stack.stats().held_bytes());
}

void register_length(headwise::token_count length) {
  const std::string case_name = "decode/" + std::to_string(length) + " tokens";
  const auto add = [&](const std::string& variant, const std::vector<policy>& plan) {
    benchmark::RegisterBenchmark((case_name + "/" + variant).c_str(), [=](benchmark::State& state) {
      time_steps(state, kept<decode_stack>(case_name, variant, length, plan));
    })->Unit(benchmark::kMillisecond);
  };
  add("global", all_global(decode_stack::shape));
  add("half", scattered_plan(decode_stack::shape, length, 0.5));
  add("quarter", scattered_plan(decode_stack::shape, length, 0.25));
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  for (const headwise::token_count length : {2048U, 8192U}) headwise_bench::register_length(length);
  return headwise_bench::run(argc, argv, "global");
}
