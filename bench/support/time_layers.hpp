// SPDX-License-Identifier: Apache-2.0
//
// The timed loops over layers: one iteration is one layer, the next one each time.
#pragma once

#include "support/comparison.hpp"
#include "support/layer_problem.hpp"
#include "support/stream.hpp"
#include "support/team.hpp"

namespace headwise_bench {

// The share [first, last) of `count` that a worker of a team takes.
struct share {
  share(std::size_t count, const team& threads, unsigned worker)
      : first(count * worker / threads.workers()), last(count * (worker + 1) / threads.workers()) {}
  std::size_t first, last;
};

// fn(layer) for the layers by turns; returns the last one.
template <class Fn>
std::size_t time_each(benchmark::State& state, std::size_t layers, const Fn& fn) {
  std::size_t next = 0, last = 0;
  for (auto _ : state) {
    fn(next);
    benchmark::ClobberMemory();
    last = next;
    next = next + 1 == layers ? 0 : next + 1;
  }
  return last;
}

// All query heads of a layer attend, the KV heads shared among a team.
template <class Layers>
class layer_attention {
 public:
  layer_attention(const problem& p, Layers& cache, team& threads)
      : problem_(p), cache_(cache), threads_(threads), out_(kv_heads * group_elements()) {}

  void run(std::size_t layer) {
    const row_table& queries = inputs_of(problem_).queries;
    threads_.run([&](unsigned worker) {
      const share heads(kv_heads, threads_, worker);
      for (std::size_t head = heads.first; head < heads.last; ++head)
        cache_.attend(
            worker, layer, static_cast<std::uint32_t>(head),
            queries.view(head, 0, problem_.group_size),
            {out_.data() + head * group_elements(), problem_.group_size, problem_.head_dim});
    });
    benchmark::DoNotOptimize(out_.data());
  }
  void check(benchmark::State& state) const {
    compare_checksum(state, magnitude(out_), cache_.expected());
  }

 private:
  [[nodiscard]] std::size_t group_elements() const {
    return std::size_t{problem_.group_size} * problem_.head_dim;
  }
  problem problem_;
  Layers& cache_;
  team& threads_;
  std::vector<float> out_;  // [kv_heads, group, head_dim]
};

template <class Layers>
void time_attention(benchmark::State& state, const problem& p, Layers& cache, team& threads) {
  layer_attention<Layers> attention(p, cache, threads);
  time_each(state, cache.layers(), [&](std::size_t layer) { attention.run(layer); });
  attention.check(state);
  count_bytes(state, cache.layer_bytes());
  state.counters["kept"] = cache.kept_ratio();
  state.counters["held"] = static_cast<double>(cache.held_bytes());
}

// Reads the bytes of a layer: no attention can be faster. read(words) -> their sum.
template <class Read>
void time_stream(benchmark::State& state, const word_layers& data, team& threads,
                 const Read& read) {
  struct alignas(64) padded {
    std::uint64_t sum;
  };
  std::vector<padded> sums(threads.workers());
  const std::size_t last = time_each(state, data.layers(), [&](std::size_t layer) {
    threads.run([&](unsigned worker) {
      const words all = data.layer(layer);
      const share part(all.size(), threads, worker);
      sums[worker].sum = read(all.subspan(part.first, part.last - part.first));
    });
    benchmark::DoNotOptimize(sums.data());
  });
  double sum = 0.0;
  for (const padded& part : sums) sum += static_cast<double>(part.sum);
  compare_checksum(state, sum, data.expected_sum(last));
  count_bytes(state, data.layer_bytes());
}

}  // namespace headwise_bench
