// SPDX-License-Identifier: Apache-2.0
//
// How long does decode attention of one layer take (8 KV heads, one token), for each codec, against
// a dense cache and against reading the same bytes once?
#include <functional>
#include <utility>

#include "support/dense_layers.hpp"
#include "support/headwise_layers.hpp"
#include "support/time_layers.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;

class variants_of {
 public:
  explicit variants_of(const problem& p) : problem_(p) {}

  template <class Codec>
  void add_dense(const std::string& variant, Codec) const {
    const problem p = problem_;
    add(variant, 1, [=](benchmark::State& state, team& alone) {
      time_attention(state, p, kept<dense_layers<Codec>>(p.name(), variant, p), alone);
    });
  }
  // The names of fixtures leave out the workers: one thread and two read the same cache.
  template <class Key, class Value>
  void add_plan(const std::string& variant, Key, Value, const std::vector<policy>& plan,
                unsigned workers = 1) const {
    const problem p = problem_;
    add(variant, workers, [=](benchmark::State& state, team& threads) {
      auto& cache = kept<headwise_layers<Key, Value>>(p.name(), variant, p, plan, most_workers);
      time_attention(state, p, cache, threads);
    });
  }
  template <class Read>
  void add_stream(const std::string& variant, std::size_t row_bytes, const Read& read,
                  unsigned workers = 1) const {
    const problem p = problem_;
    add(variant, workers, [=](benchmark::State& state, team& threads) {
      const std::size_t layer_bytes = kv_heads * p.length * row_bytes;
      const auto& data = kept<word_layers>(p.name(), "words " + std::to_string(row_bytes),
                                           problem::cold_layers(layer_bytes), layer_bytes);
      time_stream(state, data, threads, read);
    });
  }
  // A codec of keys and one of values: every head global, and the same bytes read once.
  template <class Key, class Value>
  void add_codec(const std::string& codec, Key key, Value value, unsigned workers = 1) const {
    add_plan("global_" + codec, key, value, all_global(problem_.shape(1)), workers);
    add_stream("stream_" + codec, problem_.row_bytes<Key, Value>(), sum_of, workers);
  }

 private:
  static constexpr unsigned most_workers = 2;

  // More than one thread can only be timed by the clock on the wall.
  void add(const std::string& variant, unsigned workers,
           const std::function<void(benchmark::State&, team&)>& fn) const {
    std::string name = "attend/" + problem_.name() + "/" + variant;
    if (workers > 1) name += ", " + std::to_string(workers) + " threads";
    auto* const added = benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      team threads(workers);
      fn(state, threads);
    });
    added->Unit(benchmark::kMicrosecond);
    if (workers > 1) added->UseRealTime();
  }

  problem problem_;
};

void register_problem(const problem& p) {
  const variants_of variants(p);
  variants.add_dense("dense_f32", hw::f32{});
  variants.add_dense("dense_f16", hw::f16{});
  variants.add_codec("f32", hw::f32{}, hw::f32{});
  variants.add_codec("f16", hw::f16{}, hw::f16{});
  variants.add_codec("bf16", hw::bf16{}, hw::bf16{});
  variants.add_codec("int8", hw::int8_row{}, hw::int8_row{});
  variants.add_codec("int8+int4", hw::int8_row{}, hw::int4_group{});
  variants.add_codec("int4", hw::int4_group{}, hw::int4_group{});
  variants.add_codec("f16", hw::f16{}, hw::f16{}, 2);
  variants.add_plan("half_f16", hw::f16{}, hw::f16{}, half_plan(p.shape(1), p.length));
  variants.add_plan("quarter_f16", hw::f16{}, hw::f16{}, quarter_plan(p.shape(1), p.length));
  variants.add_stream("in_order_f16", p.row_bytes<hw::f16>(), sum_in_order);
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  for (const std::uint32_t head_dim : {64U, 128U})
    for (const std::uint32_t group_size : {1U, 2U, 4U, 8U})
      for (const headwise::token_count length : {512U, 2048U, 8192U, 32768U})
        headwise_bench::register_problem({head_dim, group_size, length});
  return headwise_bench::run(argc, argv, "dense_f32");
}
