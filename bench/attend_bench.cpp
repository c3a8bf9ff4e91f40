// SPDX-License-Identifier: Apache-2.0
//
// How long does decode attention of one layer take (8 KV heads, one token)? Caches are larger than
// any processor cache: each iteration takes the next of many layers.
#include <functional>
#include <numeric>
#include <utility>

#include "headwise/headwise.hpp"
#include "support/comparison.hpp"
#include "support/dense_cache.hpp"
#include "support/kept.hpp"
#include "support/plans.hpp"
#include "support/row_table.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;
constexpr std::uint32_t kv_heads = 8;
constexpr std::size_t cold_bytes = std::size_t{128}
                                   << 20;  // four times a last-level cache of 32 MiB

struct problem {
  std::uint32_t head_dim, group_size;
  hw::token_count length;

  [[nodiscard]] hw::model_shape shape(std::size_t layers) const {
    return {static_cast<std::uint32_t>(layers), kv_heads * group_size, kv_heads, head_dim};
  }
  // Layers that together hold cold_bytes, when one holds so many.
  [[nodiscard]] hw::model_shape cold_shape(std::size_t layer_bytes) const {
    return shape(cold_bytes / layer_bytes + 1);
  }
  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim)); }
  [[nodiscard]] std::string name() const {
    return "head_dim " + std::to_string(head_dim) + ", group " + std::to_string(group_size) + ", " +
           std::to_string(length) + " tokens";
  }
};

// The same rows in each layer, in memory of its own.
struct inputs {
  explicit inputs(const problem& p)
      : keys(1, kv_heads, p.length, p.head_dim),
        values(2, kv_heads, p.length, p.head_dim),
        queries(3, kv_heads, p.group_size, p.head_dim) {}
  row_table keys, values, queries;
};
[[nodiscard]] const inputs& inputs_of(const problem& p) {
  return kept<inputs>(p.name(), p);
}

[[nodiscard]] hw::token token_at(hw::position pos) {
  return {pos, 0, pos < sink_count ? hw::token_classes::sink : hw::token_classes::none};
}

// A layer's attention in double precision over the tokens that the plan keeps: the sum of the
// magnitudes of all outputs.
[[nodiscard]] double reference_checksum(const problem& p, const std::vector<policy>& plan) {
  const inputs& in = inputs_of(p);
  double checksum = 0.0;
  std::vector<double> sums(p.head_dim);
  for (std::size_t head = 0; head < kv_heads; ++head)
    for (std::size_t g = 0; g < p.group_size; ++g) {
      const auto query = in.queries.view(head, g, 1)[0];
      double total = 0.0;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (hw::position pos = 0; pos < p.length; ++pos) {
        if (!hw::sees(p.length - 1, pos, hw::lifetime_of(plan[head], token_at(pos)))) continue;
        const auto key = in.keys.view(head, pos, 1)[0], value = in.values.view(head, pos, 1)[0];
        const double logit = std::inner_product(query.begin(), query.end(), key.begin(), 0.0);
        const double weight = std::exp(logit * double{p.scale()});
        total += weight;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * double{value[i]};
      }
      for (const double sum : sums) checksum += std::abs(sum / total);
    }
  return checksum;
}

// The layers of a headwise cache, filled. layer_plan: [kv_heads].
template <hw::row_codec Codec>
class headwise_layers {
 public:
  headwise_layers(const problem& p, const std::vector<policy>& layer_plan)
      : problem_(p),
        layer_bytes_(rows_of(p, layer_plan) * 2 * Codec::row_bytes(p.head_dim)),
        shape_(p.cold_shape(layer_bytes_)),
        expected_(reference_checksum(p, layer_plan)),
        cache_(shape_, repeated(layer_plan, shape_.layers), {}),
        text_(cache_.open()),
        scratch_(p.group_size, p.head_dim, p.length) {
    const inputs& in = inputs_of(p);
    std::vector<hw::token> tokens;
    for (hw::position pos = 0; pos < p.length; ++pos) tokens.push_back(token_at(pos));
    auto step = text_.try_append(tokens, hw::attend_scope::last_query);
    for (hw::head_id head; head.layer < shape_.layers; ++head.layer)
      for (head.kv_head = 0; head.kv_head < kv_heads; ++head.kv_head)
        step->write(head, in.keys.view(head.kv_head, 0, p.length),
                    in.values.view(head.kv_head, 0, p.length));
    std::move(*step).commit();
  }

  void attend(std::uint32_t layer, std::uint32_t head, hw::rows<const float> queries,
              hw::rows<float> out) {
    hw::attend(text_.head({layer, head}), problem_.length - 1, queries, problem_.scale(), out, {},
               scratch_);
  }
  [[nodiscard]] std::uint32_t layers() const { return shape_.layers; }
  [[nodiscard]] std::size_t layer_bytes() const { return layer_bytes_; }
  [[nodiscard]] double kept_ratio() const { return text_.stats().kept_ratio(); }
  [[nodiscard]] double expected() const { return expected_; }

 private:
  [[nodiscard]] static std::size_t rows_of(const problem& p, const std::vector<policy>& plan) {
    std::size_t count = 0;
    for (const policy& head : plan)
      for (hw::position pos = 0; pos < p.length; ++pos)
        count += hw::sees(p.length - 1, pos, hw::lifetime_of(head, token_at(pos))) ? 1U : 0U;
    return count;
  }
  [[nodiscard]] static std::vector<policy> repeated(const std::vector<policy>& layer_plan,
                                                    std::uint32_t layers) {
    std::vector<policy> plan;
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      plan.insert(plan.end(), layer_plan.begin(), layer_plan.end());
    return plan;
  }

  using manager = hw::cache_manager<hw::builtin_policies, Codec>;
  problem problem_;
  std::size_t layer_bytes_;
  hw::model_shape shape_;
  double expected_;
  manager cache_;
  typename manager::sequence_type text_;
  hw::attend_scratch scratch_;
};

// The same layers as a simple engine has them.
template <hw::row_codec Codec>
class dense_layers {
 public:
  explicit dense_layers(const problem& p)
      : problem_(p),
        shape_(p.cold_shape(layer_bytes())),
        expected_(reference_checksum(p, all_global(p.shape(1)))),
        cache_(shape_) {
    const inputs& in = inputs_of(p);
    cache_.reserve(p.length);
    for (std::size_t head = 0; head < shape_.heads(); ++head)
      cache_.append(head, in.keys.view(head % kv_heads, 0, p.length),
                    in.values.view(head % kv_heads, 0, p.length));
  }

  void attend(std::uint32_t layer, std::uint32_t head, hw::rows<const float> queries,
              hw::rows<float> out) {
    cache_.attend(std::size_t{layer} * kv_heads + head, queries, problem_.scale(), out);
  }
  [[nodiscard]] std::uint32_t layers() const { return shape_.layers; }
  [[nodiscard]] std::size_t layer_bytes() const {
    return kv_heads * problem_.length * 2 * Codec::row_bytes(problem_.head_dim);
  }
  [[nodiscard]] double kept_ratio() const { return 1.0; }
  [[nodiscard]] double expected() const { return expected_; }

 private:
  problem problem_;
  hw::model_shape shape_;
  double expected_;
  dense_cache<Codec> cache_;
};

// One iteration attends with all query heads of the next layer.
template <class Layers>
void time_layers(benchmark::State& state, const problem& p, Layers& cache) {
  const row_table& queries = inputs_of(p).queries;
  const std::size_t group_elements = std::size_t{p.group_size} * p.head_dim;
  std::vector<float> out(kv_heads * group_elements);
  std::uint32_t layer = 0;
  for (auto _ : state) {
    for (std::uint32_t head = 0; head < kv_heads; ++head)
      cache.attend(layer, head, queries.view(head, 0, p.group_size),
                   {out.data() + head * group_elements, p.group_size, p.head_dim});
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    layer = layer + 1 == cache.layers() ? 0 : layer + 1;
  }
  double checksum = 0.0;
  for (const float element : out) checksum += std::abs(double{element});
  compare_checksum(state, checksum, cache.expected());
  count_bytes(state, cache.layer_bytes());
  state.counters["kept"] = cache.kept_ratio();
}

// Reads the bytes of a full f16 layer once and adds them up: no attention can be faster.
void stream(benchmark::State& state, const problem& p) {
  const std::size_t layer_words = kv_heads * p.length * 2 * hw::f16::row_bytes(p.head_dim) / 8;
  const std::size_t layers = p.cold_shape(layer_words * 8).layers;
  std::vector<std::uint64_t> words(layer_words * layers);
  std::iota(words.begin(), words.end(), std::uint64_t{0});
  std::size_t layer = 0;
  std::uint64_t sum = 0;
  for (auto _ : state) {
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(layer * layer_words);
    sum =
        std::accumulate(first, first + static_cast<std::ptrdiff_t>(layer_words), std::uint64_t{0});
    benchmark::DoNotOptimize(sum);
    layer = layer + 1 == layers ? 0 : layer + 1;
  }
  const double first =
      static_cast<double>((layer == 0 ? layers : layer) - 1) * static_cast<double>(layer_words);
  const double count = static_cast<double>(layer_words);
  compare_checksum(state, static_cast<double>(sum), count * (first + (count - 1) / 2));
  count_bytes(state, layer_words * 8);
}

void register_problem(const problem& p) {
  const auto add = [&](const std::string& variant, std::function<void(benchmark::State&)> fn) {
    benchmark::RegisterBenchmark(("attend/" + p.name() + "/" + variant).c_str(), std::move(fn))
        ->Unit(benchmark::kMicrosecond);
  };
  const auto add_dense = [&]<class Codec>(const std::string& variant, Codec) {
    add(variant, [=](benchmark::State& state) {
      time_layers(state, p, kept<dense_layers<Codec>>(p.name(), p));
    });
  };
  const auto add_plan = [&]<class Codec>(const std::string& variant, Codec,
                                         const std::vector<policy>& plan) {
    add(variant, [=](benchmark::State& state) {
      time_layers(state, p, kept<headwise_layers<Codec>>(p.name() + variant, p, plan));
    });
  };
  const hw::model_shape layer = p.shape(1);
  add_dense("dense_f32", hw::f32{});
  add_dense("dense_f16", hw::f16{});
  add_plan("global_f32", hw::f32{}, all_global(layer));
  add_plan("global_f16", hw::f16{}, all_global(layer));
  add_plan("half_f16", hw::f16{}, half_plan(layer, p.length));
  add_plan("quarter_f16", hw::f16{}, quarter_plan(layer, p.length));
  add("stream_f16", [=](auto& state) { stream(state, p); });
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  for (const std::uint32_t head_dim : {64U, 128U})
    for (const std::uint32_t group_size : {1U, 4U, 8U})
      for (const headwise::token_count length : {512U, 2048U, 8192U})
        headwise_bench::register_problem({head_dim, group_size, length});
  return headwise_bench::run(argc, argv, "dense_f32");
}
