// SPDX-License-Identifier: Apache-2.0
//
// What the adapter for llama.cpp lets the threads of a graph share, without llama.cpp: any number
// of workers, more and fewer than there is scratch for, gives the same bits, and those of attention
// in double. Run under the thread sanitizer as well.
#include <barrier>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "llama_cpp/cached_rows.hpp"

#include "headwise/codec/f32.hpp"
#include "headwise/policy/spec.hpp"
#include "support/random.hpp"
#include "support/reference_attention.hpp"

namespace headwise_tests {
namespace {

namespace hlc = headwise_llama_cpp;
using headwise::position;
using headwise::token;

constexpr headwise::model_shape graph_shape{2, 8, 4, 24};
constexpr std::size_t micro_batch = 64, kv_width = 4 * 24, query_width = 8 * 24;
constexpr position longest_text = 700;  // more than a piece of a head
constexpr headwise::token_count graph_window = 20, graph_sinks = 4;
constexpr float graph_scale = 0.3F;

// In each layer: all, a window, graph_sinks and a window, and heavy hitters.
headwise::blueprint graph_plan() {
  using namespace headwise;
  const policy_spec specs[] = {
      make_spec(global{}), make_spec(local_window(graph_window)),
      make_spec(union_of(special_tokens(token_classes::sink), local_window(graph_window))),
      make_spec(union_of(heavy_hitters(12), local_window(graph_window)))};
  blueprint plan = uniform_blueprint(graph_shape, specs[0]);
  for (std::size_t i = 0; i < plan.heads.size(); ++i) plan.heads[i].policy = specs[i % 4];
  return plan;
}
constexpr std::uint32_t ranked_head = 3;

bool is_seen(std::uint32_t head, position query, position pos) {
  return head == 0 || query - pos < graph_window || (head == 2 && pos < graph_sinks);
}

enum row_kind : std::uint32_t { query_row, key_row, value_row };

// The same numbers for the same token, whoever asks.
std::vector<float> row_of(row_kind kind, std::uint32_t layer, std::size_t sequence, position pos) {
  const auto text = static_cast<std::uint32_t>(sequence);
  return random_source(((pos * 2 + text) * 4 + layer) * 4 + kind)
      .numbers(kind == query_row ? query_width : kv_width);
}

struct part_size {
  std::size_t sequence;
  position tokens;
};
using batch_parts = std::vector<part_size>;

// A graph of keys, values and attention in each layer, with a barrier behind each node.
class shared_graph {
 public:
  static constexpr std::size_t nodes = 3 * graph_shape.layers;

  // made_for: the workers that there is scratch for. threads: that run.
  shared_graph(std::size_t made_for, std::size_t threads)
      : rows_(graph_plan(), {}, {2, longest_text, micro_batch, made_for, nullptr}),
        threads_(threads) {}

  // Returns what the layers gave, [layers, tokens, query_width]. Broken off behind `run_nodes`.
  std::vector<float> run(const batch_parts& sizes, std::size_t run_nodes = nodes) {
    open(sizes);
    out_.assign(graph_shape.layers * count_ * query_width, 0.0F);
    std::barrier done(static_cast<std::ptrdiff_t>(threads_));
    {
      std::vector<std::jthread> workers;
      for (std::size_t t = 0; t < threads_; ++t)
        workers.emplace_back([&, t] {
          for (std::size_t node = 0; node < run_nodes; ++node) {
            work({t, threads_}, static_cast<std::uint32_t>(node / 3), node % 3);
            done.arrive_and_wait();
          }
        });
    }
    run_nodes == nodes ? rows_.commit() : rows_.cancel();
    return out_;
  }
  [[nodiscard]] const hlc::row_store& rows() const noexcept { return rows_; }

 private:
  void open(const batch_parts& sizes) {
    std::vector<token> tokens[2];
    std::vector<hlc::step_part> steps;
    for (auto& kind : input_) kind.assign(graph_shape.layers, {});
    count_ = 0;
    for (const part_size& p : sizes) {
      for (position i = 0; i < p.tokens; ++i) {
        const position pos = rows_.length(p.sequence) + i;
        const auto classes =
            pos < graph_sinks ? headwise::token_classes::sink : headwise::token_classes::none;
        tokens[p.sequence].push_back({pos, 1, classes});
        add_rows(p.sequence, pos);
      }
      steps.push_back({p.sequence, tokens[p.sequence]});
      count_ += p.tokens;
    }
    ASSERT_TRUE(rows_.try_begin(steps));
  }
  void add_rows(std::size_t sequence, position pos) {
    for (const row_kind kind : {query_row, key_row, value_row})
      for (std::uint32_t layer = 0; layer < graph_shape.layers; ++layer) {
        const std::vector<float> row = row_of(kind, layer, sequence, pos);
        input_[kind][layer].insert(input_[kind][layer].end(), row.begin(), row.end());
      }
  }
  void work(hlc::worker self, std::uint32_t layer, std::size_t node) {
    const auto of = [&](row_kind kind, std::size_t width) {
      return headwise::rows<const float>(input_[kind][layer].data(), count_, width);
    };
    if (node == 0) return rows_.add_keys(self, of(key_row, kv_width));
    if (node == 1) return rows_.add_values(self, layer, of(value_row, kv_width));
    rows_.attend(self, layer, of(query_row, query_width), graph_scale,
                 {out_.data() + layer * count_ * query_width, count_, query_width});
  }

  hlc::cached_rows<headwise::f32, headwise::f32> rows_;
  std::size_t threads_;
  std::size_t count_ = 0;
  std::vector<std::vector<float>> input_[3];  // [kinds][layers][tokens * width]
  std::vector<float> out_;
};

// Prompts, single tokens of one and of both sequences, and both kinds at once.
std::vector<batch_parts> all_kinds_of_batches() {
  std::vector<batch_parts> batches{{{0, 50}}, {{1, 7}}, {{1, 40}, {0, 24}}, {{0, 1}, {1, 5}}};
  for (int i = 0; i < 8; ++i) batches.push_back({{0, 64}});
  for (int i = 0; i < 12; ++i)
    batches.push_back(i % 3 == 0 ? batch_parts{{0, 1}} : batch_parts{{1, 1}, {0, 1}});
  return batches;
}

struct workers_case {
  std::size_t made_for, threads;
};

void expect_as_by_one_worker(const workers_case& workers, bool broken_off_between) {
  shared_graph one(1, 1), many(workers.made_for, workers.threads);
  std::size_t nodes = 0;
  for (const batch_parts& sizes : all_kinds_of_batches()) {
    if (broken_off_between) many.run(sizes, nodes++ % shared_graph::nodes);
    ASSERT_EQ(many.run(sizes), one.run(sizes));
  }
  for (const std::size_t s : {0U, 1U}) {
    EXPECT_EQ(many.rows().length(s), one.rows().length(s));
    EXPECT_EQ(many.rows().stats(s).resident_rows, one.rows().stats(s).resident_rows);
  }
}

constexpr workers_case workers_cases[] = {{3, 3}, {3, 2}, {2, 4}, {4, 1}};

TEST(llama_cpp_threads, any_workers_give_the_bits_of_one) {
  for (const workers_case& workers : workers_cases) expect_as_by_one_worker(workers, false);
}

TEST(llama_cpp_threads, a_graph_broken_off_leaves_nothing) {
  for (const workers_case& workers : workers_cases) expect_as_by_one_worker(workers, true);
}

// What query head g of a token must get in a layer, of what its head sees.
std::vector<double> attention_in_double(std::uint32_t layer, std::size_t sequence, position query,
                                        std::uint32_t g) {
  constexpr std::size_t d = graph_shape.head_dim;
  const std::uint32_t head = g / graph_shape.group_size();
  std::vector<std::vector<float>> rows;
  std::vector<std::span<const float>> keys, values;
  rows.reserve(2 * (query + 1));
  for (position pos = 0; pos <= query; ++pos) {
    if (!is_seen(head, query, pos)) continue;
    rows.push_back(row_of(key_row, layer, sequence, pos));
    keys.push_back(std::span(rows.back()).subspan(head * d, d));
    rows.push_back(row_of(value_row, layer, sequence, pos));
    values.push_back(std::span(rows.back()).subspan(head * d, d));
  }
  const std::vector<float> queries = row_of(query_row, layer, sequence, query);
  return reference_attention(std::span(queries).subspan(g * d, d), double{graph_scale}, keys,
                             values)
      .values;
}

// out: [layers, tokens, query_width], of which one row is looked at; what heads that rank see,
// others test.
void expect_attention(const std::vector<float>& out, std::uint32_t layer, std::size_t row,
                      std::size_t sequence, position query) {
  for (std::uint32_t g = 0; g < graph_shape.query_heads; ++g) {
    if (g / graph_shape.group_size() == ranked_head) continue;
    const std::vector<double> expected = attention_in_double(layer, sequence, query, g);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(out[row * query_width + g * expected.size() + i], expected[i], 1e-4);
  }
}

TEST(llama_cpp_threads, the_bits_are_those_of_attention) {
  shared_graph graph(3, 3);
  for (const batch_parts& sizes : {batch_parts{{0, 50}}, batch_parts{{1, 7}},
                                   batch_parts{{1, 30}, {0, 24}}, batch_parts{{0, 1}, {1, 1}}}) {
    const position lengths[] = {graph.rows().length(0), graph.rows().length(1)};
    const std::vector<float> out = graph.run(sizes);
    std::size_t row = 0;  // in all layers
    for (std::uint32_t layer = 0; layer < graph_shape.layers; ++layer)
      for (const part_size& p : sizes)
        for (position i = 0; i < p.tokens; ++i)
          expect_attention(out, layer, row++, p.sequence, lengths[p.sequence] + i);
  }
}

}  // namespace
}  // namespace headwise_tests
