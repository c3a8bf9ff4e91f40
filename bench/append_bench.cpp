// SPDX-License-Identifier: Apache-2.0
//
// What does a token cost to store, in all heads of 16 layers x 8 KV heads (head_dim 128)? One
// iteration is one token: try_append, write for every head, commit. Measured are the tokens from
// 512 to 1024, over and over, so that a window of 256 evicts a row for each that it takes.
#include <functional>

#include "headwise/headwise.hpp"
#include "support/comparison.hpp"
#include "support/dense_cache.hpp"
#include "support/plans.hpp"
#include "support/row_table.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;
constexpr hw::model_shape shape{16, 8, 8, 128};
constexpr hw::token_count first_timed = 512, last_timed = 1024;

// Fresh rows of a few tokens, as a model leaves them in its buffers.
struct inputs {
  row_table keys{1, 1, 16, shape.head_dim}, values{2, 1, 16, shape.head_dim};
  [[nodiscard]] hw::rows<const float> key(hw::position pos) const {
    return keys.view(0, pos % 16, 1);
  }
  [[nodiscard]] hw::rows<const float> value(hw::position pos) const {
    return values.view(0, pos % 16, 1);
  }
};

[[nodiscard]] double magnitude(std::span<const float> row) {
  double sum = 0.0;
  for (const float element : row) sum += std::abs(double{element});
  return sum;
}

// The rows that the newest token sees, all heads: the magnitudes of keys and values.
[[nodiscard]] double reference_checksum(const std::vector<policy>& plan, hw::token_count length) {
  const inputs in;
  double sum = 0.0;
  for (const policy& head : plan)
    for (hw::position pos = 0; pos < length; ++pos)
      if (newest_sees(head, length, pos))
        sum += magnitude(in.key(pos)[0]) + magnitude(in.value(pos)[0]);
  return sum;
}

template <hw::row_codec Codec>
[[nodiscard]] double stored_magnitude(const std::byte* encoded, std::size_t row_count) {
  std::vector<float> row(shape.head_dim);
  double sum = 0.0;
  for (std::size_t r = 0; r < row_count; ++r) {
    Codec::decode(encoded + r * Codec::row_bytes(shape.head_dim), row);
    sum += magnitude(row);
  }
  return sum;
}

template <class Sequence>
void append_token(Sequence& text, const inputs& in) {
  const hw::token next = token_at(text.length());
  auto step = text.try_append({&next, 1});
  for (hw::head_id head; head.layer < shape.layers; ++head.layer)
    for (head.kv_head = 0; head.kv_head < shape.kv_heads; ++head.kv_head)
      step->write(head, in.key(next.pos), in.value(next.pos));
  std::move(*step).commit();
}

// restart() makes an empty cache, append() adds a token; only tokens from first_timed on count.
template <class Restart, class Append>
hw::token_count time_tokens(benchmark::State& state, Restart restart, Append append) {
  const auto start_over = [&] {
    restart();
    for (hw::token_count length = 0; length < first_timed; ++length) append();
    return first_timed;
  };
  hw::token_count length = start_over();
  for (auto _ : state) {
    if (length == last_timed) {
      state.PauseTiming();
      length = start_over();
      state.ResumeTiming();
    }
    append();
    ++length;
    benchmark::ClobberMemory();
  }
  return length;
}

// warm: pages are taken beforehand and reused, else they come from the heap and go back to it.
template <hw::row_codec Codec>
void headwise_append(benchmark::State& state, const std::vector<policy>& plan, bool warm) {
  const inputs in;
  constexpr std::uint32_t page_tokens = 32;
  const std::size_t pages = shape.heads() * (last_timed / page_tokens + 2);
  hw::cache_manager<hw::builtin_policies, Codec> cache(
      shape, plan, {.page_tokens = page_tokens, .reserved_pages = warm ? pages : 0});
  auto text = cache.open();
  time_tokens(
      state, [&] { text = cache.open(); }, [&] { append_token(text, in); });
  double checksum = 0.0;
  for (hw::head_id head; head.layer < shape.layers; ++head.layer)
    for (head.kv_head = 0; head.kv_head < shape.kv_heads; ++head.kv_head)
      text.head(head).for_each_slab(text.length() - 1, [&](const hw::slab& slab) {
        checksum += stored_magnitude<Codec>(slab.keys, slab.count) +
                    stored_magnitude<Codec>(slab.values, slab.count);
      });
  compare_checksum(state, checksum, reference_checksum(plan, text.length()));
  count_bytes(state, shape.heads() * 2 * Codec::row_bytes(shape.head_dim));
  state.counters["kept"] = text.stats().kept_ratio();
}

template <hw::row_codec Codec>
void dense_append(benchmark::State& state, bool warm) {
  const inputs in;
  dense_cache<Codec> cache(shape);
  hw::position next = 0;
  const auto restart = [&] {
    cache = dense_cache<Codec>(shape);
    if (warm) cache.reserve(last_timed);
    next = 0;
  };
  const hw::token_count length = time_tokens(state, restart, [&] {
    for (std::size_t head = 0; head < shape.heads(); ++head)
      cache.append(head, in.key(next), in.value(next));
    ++next;
  });
  double checksum = 0.0;
  for (std::size_t head = 0; head < shape.heads(); ++head)
    checksum += stored_magnitude<Codec>(cache.keys(head).data(), length) +
                stored_magnitude<Codec>(cache.values(head).data(), length);
  compare_checksum(state, checksum, reference_checksum(all_global(shape), length));
  count_bytes(state, shape.heads() * 2 * Codec::row_bytes(shape.head_dim));
  state.counters["kept"] = 1.0;
}

void register_all() {
  const auto add = [](const char* name, std::function<void(benchmark::State&)> fn) {
    benchmark::RegisterBenchmark(name, std::move(fn))->Unit(benchmark::kMicrosecond);
  };
  const hw::local_window window(256);
  const hw::special_tokens marks(hw::token_classes::sink | hw::token_classes::punctuation);
  const std::size_t heads = shape.heads();
  const std::vector<policy> local(heads, window), special(heads, marks),
      both(heads, hw::union_of(marks, window));
  for (const bool warm : {true, false}) {
    const std::string kind = warm ? "append/f16, memory taken before/" : "append/f16, growing/";
    const auto add_plan = [&](const char* variant, const std::vector<policy>& plan) {
      add((kind + variant).c_str(),
          [=](auto& state) { headwise_append<hw::f16>(state, plan, warm); });
    };
    add((kind + "dense").c_str(), [=](auto& state) { dense_append<hw::f16>(state, warm); });
    add_plan("global", all_global(shape));
    add_plan("local", local);
    add_plan("special", special);
    add_plan("special+local", both);
    add_plan("half", half_plan(shape, last_timed));
    add_plan("quarter", quarter_plan(shape, last_timed));
  }
  add("append/f32, memory taken before/dense",
      [](auto& state) { dense_append<hw::f32>(state, true); });
  add("append/f32, memory taken before/global",
      [](auto& state) { headwise_append<hw::f32>(state, all_global(shape), true); });
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  headwise_bench::register_all();
  return headwise_bench::run(argc, argv, "dense");
}
