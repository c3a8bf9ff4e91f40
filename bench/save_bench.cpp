// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to save a sequence to memory and to restore it, beside one copy of the bytes
// that it holds? 2,048 tokens in the shape of SmolLM2-135M (30 layers x 3 KV heads, head_dim 64),
// f16. A restored sequence is checked by saving it again.
#include <algorithm>
#include <cstring>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>

#include "headwise/headwise.hpp"
#include "headwise/manager/saved_sequence.hpp"
#include "support/comparison.hpp"
#include "support/plans.hpp"
#include "support/row_table.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;
using cache = hw::cache_manager<>;
constexpr hw::model_shape shape{30, 9, 3, 64};
constexpr hw::token_count length = 2048;

// A stream over memory that is there already.
class memory_buffer : public std::streambuf {
 public:
  explicit memory_buffer(std::span<char> bytes) {
    setp(bytes.data(), bytes.data() + bytes.size());
    setg(bytes.data(), bytes.data(), bytes.data() + bytes.size());
  }
};

[[nodiscard]] cache::sequence_type filled(cache& manager) {
  const row_table keys(1, 1, length, shape.head_dim), values(2, 1, length, shape.head_dim);
  const row_table queries(3, 1, 3, shape.head_dim);
  std::vector<float> out(3 * shape.head_dim);
  hw::attend_scratch scratch(3, shape.head_dim, length);
  auto text = manager.open(length);
  for (hw::position pos = 0; pos < length; ++pos) {
    auto step = text.try_append(
        hw::token{pos, 1, pos < sink_count ? hw::token_classes::sink : hw::token_classes::none});
    for (hw::head_id head; head.layer < shape.layers; ++head.layer)
      for (head.kv_head = 0; head.kv_head < shape.kv_heads; ++head.kv_head) {
        step->write(head, keys.view(0, pos, 1), values.view(0, pos, 1));
        const auto view = step->head(head);
        if (view.awaits_attention(pos))
          hw::attend(view, pos, queries.view(0, 0, 3), 0.125F, {out.data(), 3, shape.head_dim}, {},
                     scratch);
      }
    std::move(*step).commit();
  }
  return text;
}

[[nodiscard]] std::vector<char> saved(const cache::sequence_type& text) {
  std::vector<char> file(hw::saved_bytes(text));
  memory_buffer buffer(file);
  std::ostream out(&buffer);
  hw::save(text, out);
  return file;
}

[[nodiscard]] double sum_of(const std::vector<char>& bytes) {
  double sum = 0.0;
  for (const char byte : bytes) sum += static_cast<unsigned char>(byte);
  return sum;
}

// Filled when it is first asked for, since that takes longer than all measurements.
struct saved_case {
  explicit saved_case(const std::vector<policy>& plan) : manager(shape, plan, {}) {}
  void fill() {
    if (text) return;
    text.emplace(filled(manager));
    file = saved(*text);
  }
  cache manager;
  std::optional<cache::sequence_type> text;
  std::vector<char> file;
};

void add(const std::string& name, const std::vector<policy>& plan) {
  const auto shared = std::make_shared<saved_case>(plan);
  // body(case, state) -> bytes that must be those of the file
  const auto measure = [&](const char* variant, auto body) {
    const auto run = [=](benchmark::State& state) {
      shared->fill();
      const double expected = sum_of(shared->file);
      const std::vector<char> result = body(*shared, state);
      state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(shared->file.size()));
      state.counters["file / payload"] = static_cast<double>(shared->file.size()) /
                                         static_cast<double>(shared->text->stats().payload_bytes);
      compare_checksum(state, sum_of(result), expected);
    };
    benchmark::RegisterBenchmark(("save/" + name + "/" + variant).c_str(), run)
        ->Unit(benchmark::kMillisecond);
  };
  measure("copy", [](saved_case& c, benchmark::State& state) {
    std::vector<char> copy(c.file.size());
    for (auto _ : state) {
      std::memcpy(copy.data(), c.file.data(), copy.size());
      benchmark::DoNotOptimize(copy.data());
      benchmark::ClobberMemory();
    }
    return copy;
  });
  measure("save", [](saved_case& c, benchmark::State& state) {
    std::vector<char> file(c.file.size());
    for (auto _ : state) {
      memory_buffer buffer(file);
      std::ostream out(&buffer);
      hw::save(*c.text, out);
      benchmark::ClobberMemory();
    }
    return file;
  });
  measure("restore", [](saved_case& c, benchmark::State& state) {
    std::vector<char> again;
    for (auto _ : state) {
      memory_buffer buffer(c.file);
      std::istream in(&buffer);
      auto back = hw::try_restore(c.manager, in);
      state.PauseTiming();
      if (again.empty()) again = saved(*back);
      back.reset();
      state.ResumeTiming();
    }
    return again;
  });
}

void register_all() {
  add("global", all_global(shape));
  add("half", mixed_plan(shape, length, 1, 0.5));
  add("64 recent + 192 heavy hitters",
      std::vector<policy>(shape.heads(),
                          hw::union_of(hw::local_window(64), hw::heavy_hitters(192))));
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  headwise_bench::register_all();
  return headwise_bench::run(argc, argv, "copy");
}
