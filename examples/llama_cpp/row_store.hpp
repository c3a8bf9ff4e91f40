// SPDX-License-Identifier: Apache-2.0
//
// layer_rows: what the nodes of a graph are given to do. row_store: the same, whatever the rows are
// stored as. It holds the sequences and, while a micro-batch runs, one open step of each sequence
// that has tokens in it.
//
//   try_begin(parts)                              the owner thread, before the graph runs
//   for each layer: add_keys, add_values, attend  all workers together, in this order; whoever
//                                                 calls lets no worker begin one before all have
//                                                 ended the one before
//   commit() or cancel()                          the owner thread, after it
//
// The calls of a layer neither allocate nor throw. O(rows seen * query heads * head_dim) a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/core/rows.hpp"
#include "headwise/manager/cache_config.hpp"
#include "headwise/manager/stats.hpp"

namespace headwise_llama_cpp {

// How rows lie in bytes; int8_int4: keys in eight bits, values in four.
enum class row_type { f32, f16, bf16, int8, int4, int8_int4 };

// One of `count` threads that share a node's work.
struct worker {
  std::size_t index = 0;
  std::size_t count = 1;
};

// The tokens of one sequence in a micro-batch, side by side in it.
struct step_part {
  std::size_t sequence;
  std::span<const headwise::token> tokens;
};

struct row_store_sizes {
  std::size_t sequences = 1;
  headwise::token_count capacity = 0;  // tokens of the longest sequence
  std::size_t micro_batch = 0;         // the most tokens of a step, over all sequences
  std::size_t workers = 1;
  // Of what workers compute with; nullptr: that of the rows.
  std::pmr::memory_resource* scratch = nullptr;
};

class layer_rows {
 public:
  virtual ~layer_rows() = default;
  // keys, values: [tokens of the micro-batch, kv_heads * head_dim].
  virtual void add_keys(worker self, headwise::rows<const float> keys) noexcept = 0;
  virtual void add_values(worker self, std::uint32_t layer,
                          headwise::rows<const float> values) noexcept = 0;
  // queries, out: [tokens of the micro-batch, query_heads * head_dim].
  virtual void attend(worker self, std::uint32_t layer, headwise::rows<const float> queries,
                      float scale, headwise::rows<float> out) noexcept = 0;

  [[nodiscard]] virtual const headwise::model_shape& shape() const noexcept = 0;
};

class row_store : public layer_rows {
 public:
  // False where pages or memory do not suffice; then nothing changed. Parts: each sequence once.
  [[nodiscard]] virtual bool try_begin(std::span<const step_part> parts) noexcept = 0;
  virtual void commit() noexcept = 0;
  virtual void cancel() noexcept = 0;  // nothing where no step is open

  [[nodiscard]] virtual headwise::token_count length(std::size_t sequence) const noexcept = 0;
  [[nodiscard]] virtual headwise::cache_stats stats(std::size_t sequence) const noexcept = 0;
  [[nodiscard]] virtual headwise::manager_stats stats() const noexcept = 0;
  [[nodiscard]] virtual bool try_rollback(std::size_t sequence,
                                          headwise::token_count tokens) noexcept = 0;
  // Empties a sequence. Throws what the memory resource throws.
  virtual void clear(std::size_t sequence) = 0;
  // Makes `to` a fork of `from`. Throws what the memory resource throws.
  virtual void fork(std::size_t from, std::size_t to) = 0;
  // A mark is a fork that go_back() makes the sequence again. One at a time for each sequence.
  virtual void mark(std::size_t sequence) = 0;
  virtual void go_back(std::size_t sequence) noexcept = 0;
  virtual void drop_mark(std::size_t sequence) noexcept = 0;
};

// Throws headwise::error where the plan or the config cannot be.
[[nodiscard]] std::unique_ptr<row_store> make_row_store(row_type type,
                                                        const headwise::blueprint& plan,
                                                        const headwise::cache_config& config,
                                                        const row_store_sizes& sizes);

}  // namespace headwise_llama_cpp
