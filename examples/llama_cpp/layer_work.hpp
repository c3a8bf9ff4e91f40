// SPDX-License-Identifier: Apache-2.0
//
// layer_work: one layer's attention of a micro-batch, shared by the threads that run the graph.
// Tokens that come one to a sequence are cut by rows (layer_partition), a sequence at a time;
// prompts by head and block of queries, dealt out as threads get free. Whoever ends a node last
// does what one thread must: no thread waits for another but where the graph does.
// The same bits for any number of workers. No allocation after construction, no lock, no throw.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "row_store.hpp"

#include "headwise/attend/attend_chunk.hpp"
#include "headwise/attend/partition.hpp"
#include "headwise/manager/append_step.hpp"

namespace headwise_llama_cpp {

// The last of `count` workers to arrive is told so.
class arrivals {
 public:
  [[nodiscard]] bool is_last(std::size_t count) noexcept {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < count) return false;
    arrived_.store(0, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<std::size_t> arrived_{0};
};

// An open step and where its tokens lie in the micro-batch.
template <class Step>
struct open_part {
  std::size_t sequence;
  std::size_t first;
  Step step;

  [[nodiscard]] std::size_t count() const noexcept { return step.tokens().size(); }
  [[nodiscard]] headwise::position position() const noexcept { return step.tokens().front().pos; }
  // The part's rows of a micro-batch, columns `column` to `column + width`.
  template <class T>
  [[nodiscard]] headwise::rows<T> of(const headwise::rows<T>& all, std::size_t column,
                                     std::size_t width) const noexcept {
    return {all[first].data() + column, count(), width, all.stride};
  }
};

template <class Step>
class layer_work {
 public:
  using part = open_part<Step>;

  // Throws what the memory resource throws.
  layer_work(const headwise::model_shape& shape, const row_store_sizes& sizes,
             std::pmr::memory_resource* memory)
      : shape_(shape) {
    cuts_.reserve(sizes.sequences);
    for (std::size_t i = 0; i < sizes.sequences; ++i)
      cuts_.emplace_back(shape, sizes.capacity, sizes.workers, piece_rows, memory);
    for (std::size_t i = 0; i < sizes.workers; ++i) {
      token_scratch_.emplace_back(shape.group_size(), shape.head_dim, sizes.capacity, memory);
      chunk_scratch_.emplace_back(shape.group_size(), shape.head_dim, memory);
    }
  }

  // By one thread, once the layer's rows are written.
  void split(std::span<const part> parts, std::uint32_t layer) noexcept {
    next_item_.store(0, std::memory_order_relaxed);
    if (!is_decode(parts)) return;
    for (std::size_t i = 0; i < parts.size(); ++i)
      cuts_[i].split(parts[i].step, layer, parts[i].position());
  }
  // By all workers.
  void attend(worker self, std::span<const part> parts, std::uint32_t layer,
              const headwise::rows<const float>& queries, float scale,
              const headwise::rows<float>& out) noexcept {
    if (is_decode(parts))
      attend_tokens(self, parts, queries, scale, out);
    else
      attend_chunks(self, parts, layer, queries, scale, out);
  }

 private:
  static constexpr std::size_t piece_rows = 512;  // few KV heads must still fill some threads
  static constexpr std::size_t block = headwise::chunk_scratch::block_queries;

  [[nodiscard]] static bool is_decode(std::span<const part> parts) noexcept {
    return std::all_of(parts.begin(), parts.end(), [](const part& p) { return p.count() == 1; });
  }
  // A row of a micro-batch as one row for each query head: [query_heads, head_dim].
  template <class T>
  [[nodiscard]] headwise::rows<T> by_head(const headwise::rows<T>& all,
                                          std::size_t token) const noexcept {
    return {all[token].data(), shape_.query_heads, shape_.head_dim};
  }
  void attend_tokens(worker self, std::span<const part> parts,
                     const headwise::rows<const float>& queries, float scale,
                     const headwise::rows<float>& out) noexcept {
    // A graph may run with other threads than the cut was made for: shares are dealt out anew.
    for (std::size_t share = self.index; share < token_scratch_.size(); share += self.count)
      for (std::size_t i = 0; i < parts.size(); ++i)
        cuts_[i].attend(share, parts[i].step, by_head(queries, parts[i].first), scale,
                        by_head(out, parts[i].first), {}, token_scratch_[share]);
    if (!ended_.is_last(self.count)) return;
    for (std::size_t i = 0; i < parts.size(); ++i) cuts_[i].merge(by_head(out, parts[i].first), {});
  }
  void attend_chunks(worker self, std::span<const part> parts, std::uint32_t layer,
                     const headwise::rows<const float>& queries, float scale,
                     const headwise::rows<float>& out) noexcept {
    if (self.index >= chunk_scratch_.size()) return;
    for (;;) {
      std::size_t item = next_item_.fetch_add(1, std::memory_order_relaxed);
      const part* p = parts.data();
      for (; p != parts.data() + parts.size() && item >= items(*p); ++p) item -= items(*p);
      if (p == parts.data() + parts.size()) return;
      attend_item(self, *p, {layer, static_cast<std::uint32_t>(item % shape_.kv_heads)},
                  item / shape_.kv_heads * block, queries, scale, out);
    }
  }
  [[nodiscard]] std::size_t items(const part& p) const noexcept {
    return (p.count() + block - 1) / block * shape_.kv_heads;
  }
  void attend_item(worker self, const part& p, headwise::head_id head, std::size_t first,
                   const headwise::rows<const float>& queries, float scale,
                   const headwise::rows<float>& out) noexcept {
    const std::size_t width = std::size_t{shape_.group_size()} * shape_.head_dim;
    const auto query = p.of(queries, head.kv_head * width, width);
    const auto result = p.of(out, head.kv_head * width, width);
    const auto view = p.step.head(head);
    if (view.ranks()) {
      // What a query sees depends on those before it, so one worker takes the head whole.
      if (first == 0) attend_in_order(self, p, head, query, scale, result);
      return;
    }
    const std::size_t count = std::min(block, p.count() - first);
    headwise::attend_chunk(view, static_cast<headwise::position>(p.position() + first),
                           {query[first].data(), count, width, query.stride}, scale,
                           {result[first].data(), count, width, result.stride}, {},
                           chunk_scratch_[self.index]);
  }
  void attend_in_order(worker self, const part& p, headwise::head_id head,
                       const headwise::rows<const float>& queries, float scale,
                       const headwise::rows<float>& out) noexcept {
    for (std::size_t t = 0; t < queries.count; ++t)
      headwise::attend(p.step.head(head), static_cast<headwise::position>(p.position() + t),
                       {queries[t].data(), shape_.group_size(), shape_.head_dim}, scale,
                       {out[t].data(), shape_.group_size(), shape_.head_dim}, {},
                       token_scratch_[self.index]);
  }

  headwise::model_shape shape_;
  std::vector<headwise::layer_partition> cuts_;          // [parts]
  std::vector<headwise::attend_scratch> token_scratch_;  // [workers]
  std::vector<headwise::chunk_scratch> chunk_scratch_;   // [workers]
  std::atomic<std::size_t> next_item_{0};
  arrivals ended_;
};

}  // namespace headwise_llama_cpp
