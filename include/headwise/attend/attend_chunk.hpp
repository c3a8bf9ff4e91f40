// SPDX-License-Identifier: Apache-2.0
//
// Attention of a chunk of queries over one head: a prompt, a part of one, a draft. Each query sees
// exactly what attend() shows it. Blocked: some queries go through some rows while these are in the
// processor's cache, with a running softmax (FlashAttention, arXiv:2205.14135), so that rows come
// from memory once for a block of queries, and nothing is as long as the text. The last bits depend
// on how rows lie in pages. Values are added up before they are divided: |value| * rows seen must
// stay below 2^128.
// O(queries * group * rows seen * head_dim). No allocation, no lock, no throw. Different heads, and
// different chunks of one, may be attended by different threads, each with a scratch of its own.
#pragma once

#include <algorithm>

#include "headwise/attend/attend.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {
template <row_codec Key, row_codec Value>
class query_block;
}  // namespace detail

// Room for one call of attend_chunk at a time; belongs to one thread.
class chunk_scratch {
 public:
  static constexpr std::size_t block_queries = 16;
  static constexpr std::size_t tile_rows = 64;

  // Throws what the memory resource throws.
  chunk_scratch(std::uint32_t group_size, std::uint32_t head_dim,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                simd_width width = widest_simd())
      : width_(width),
        group_size_(group_size),
        head_dim_(head_dim),
        weights_(std::size_t{group_size} * tile_rows, memory),
        tops_(std::size_t{group_size} * block_queries, memory),
        sums_(std::size_t{group_size} * block_queries, memory),
        decoded_(head_dim, memory) {}

  [[nodiscard]] std::uint32_t group_size() const noexcept { return group_size_; }
  [[nodiscard]] std::uint32_t head_dim() const noexcept { return head_dim_; }

 private:
  template <row_codec Key, row_codec Value>
  friend class detail::query_block;

  simd_width width_;
  std::uint32_t group_size_;
  std::uint32_t head_dim_;
  detail::flat_vector<float> weights_;  // [group_size, tile_rows], of one query
  detail::flat_vector<float> tops_;     // [block_queries, group_size]: the greatest logit so far
  detail::flat_vector<double> sums_;    // [block_queries, group_size]: of exp(logit - top)
  detail::decoded_rows decoded_;
};

namespace detail {

// The queries that go through the rows together; out holds their sums of values until finish().
template <row_codec Key, row_codec Value>
class query_block {
 public:
  query_block(position first, const rows<const float>& queries, float scale, const rows<float>& out,
              chunk_scratch& scratch) noexcept
      : first_(first),
        queries_(queries),
        scale_(scale),
        out_(out),
        scratch_(scratch),
        d_(scratch.head_dim_),
        key_(row_kernels_at<kernel_codec<Key>>(scratch.width_)),
        value_(row_kernels_at<kernel_codec<Value>>(scratch.width_)),
        logits_(logit_kernels_at(scratch.width_)) {
    for (std::size_t t = 0; t < out.count; ++t) std::fill(out[t].begin(), out[t].end(), 0.0F);
    std::fill(scratch.tops_.begin(), scratch.tops_.end(), -std::numeric_limits<float>::infinity());
    std::fill(scratch.sums_.begin(), scratch.sums_.end(), 0.0);
  }

  void attend(const slab& s, token_count lifetime) noexcept {
    for (std::uint32_t r = 0; r < s.count; r += chunk_scratch::tile_rows) {
      const tile part(s, r, d_);
      for (std::size_t t = 0; t < queries_.count; ++t) attend(t, part, lifetime);
    }
  }
  // lse: [queries, group_size], or empty.
  void finish(std::span<float> lse) noexcept {
    HEADWISE_EXPECTS(own_rows_ == queries_.count, "a query's own row is not written yet");
    for (std::size_t t = 0; t < queries_.count; ++t)
      for (std::size_t g = 0; g < scratch_.group_size_; ++g) {
        const std::size_t i = t * scratch_.group_size_ + g;
        logits_.multiply_by(out_of(t)[g], inverse_of(scratch_.sums_[i]));
        if (!lse.empty())
          lse[i] = scratch_.tops_[i] + static_cast<float>(std::log(scratch_.sums_[i]));
      }
  }

 private:
  [[nodiscard]] rows<float> out_of(std::size_t t) const noexcept {
    return {out_[t].data(), scratch_.group_size_, d_};
  }
  // Some rows of a slab.
  struct tile {
    std::span<const position> positions;
    std::array<const std::byte*, chunk_scratch::tile_rows> keys, values;

    tile(const slab& s, std::uint32_t first, std::size_t d) noexcept
        : positions(s.positions + first,
                    std::min<std::size_t>(chunk_scratch::tile_rows, s.count - first)) {
      for (std::size_t r = 0; r < positions.size(); ++r) {
        keys[r] = s.keys + (first + r) * Key::row_bytes(d);
        values[r] = s.values + (first + r) * Value::row_bytes(d);
      }
    }
  };
  void attend(std::size_t t, const tile& part, token_count lifetime) noexcept {
    const auto query = static_cast<position>(first_ + t);
    const auto& all = part.positions;
    const auto begin = std::lower_bound(all.begin(), all.end(), oldest_seen(query, lifetime));
    const auto end = std::upper_bound(begin, all.end(), query);
    if (begin == end) return;
    own_rows_ += end[-1] == query ? 1U : 0U;
    const auto skipped = static_cast<std::size_t>(begin - all.begin());
    const auto count = static_cast<std::size_t>(end - begin);
    float* const weights = scratch_.weights_.data();
    constexpr std::size_t stride = chunk_scratch::tile_rows;
    with_kernel_rows<Key>(row_block(part.keys).subspan(skipped, count), scratch_.decoded_,
                          [&](row_block block, std::size_t at) {
                            key_.dots(block, {queries_[t].data(), scratch_.group_size_, d_}, scale_,
                                      weights + at, stride);
                          });
    for (std::size_t g = 0; g < scratch_.group_size_; ++g)
      weigh(t, g, {weights + g * stride, count});
    with_kernel_rows<Value>(row_block(part.values).subspan(skipped, count), scratch_.decoded_,
                            [&](row_block block, std::size_t at) {
                              value_.sums(block, weights + at, stride, out_of(t));
                            });
  }
  // Logits become weights beside those so far, which shrink where the greatest logit grows.
  void weigh(std::size_t t, std::size_t g, std::span<float> logits) noexcept {
    const std::size_t i = t * scratch_.group_size_ + g;
    float& top = scratch_.tops_[i];
    const float tile_top = logits_.top_of(logits);
    if (tile_top > top) {
      const float factor = std::exp(top - tile_top);
      logits_.multiply_by(out_of(t)[g], factor);
      scratch_.sums_[i] *= double{factor};
      top = tile_top;
    }
    scratch_.sums_[i] += logits_.exponentials(logits, base_of(top));
  }

  position first_;
  rows<const float> queries_;  // [queries, group_size * head_dim]
  float scale_;
  rows<float> out_;
  chunk_scratch& scratch_;
  std::size_t d_;
  row_kernels key_, value_;
  logit_kernels logits_;
  std::size_t own_rows_ = 0;
};

}  // namespace detail

// queries, out: [n, group_size * head_dim] for the positions first .. first + n, the query heads of
// view's head side by side. lse: [n, group_size], log of the sum of exponentials, or empty. The
// head does not rank (head_view::ranks()): there each query attends before the next.
template <row_codec Key, row_codec Value>
void attend_chunk(const head_view<Key, Value>& view, position first, rows<const float> queries,
                  float scale, rows<float> out, std::span<float> lse,
                  chunk_scratch& scratch) noexcept {
  const std::size_t group = view.group_size(), n = queries.count;
  HEADWISE_EXPECTS(scratch.group_size() == group && scratch.head_dim() == view.head_dim(),
                   "a chunk_scratch of another group or head_dim");
  HEADWISE_EXPECTS(queries.width == group * view.head_dim() && out.width == queries.width,
                   "a row of attend_chunk is not the queries of one whole group");
  HEADWISE_EXPECTS(out.count == n && (lse.empty() || lse.size() == n * group),
                   "attend_chunk has room for another number of queries");
  for (std::size_t t = 0; t < n; t += chunk_scratch::block_queries) {
    const std::size_t count = std::min(chunk_scratch::block_queries, n - t);
    const auto from = static_cast<position>(first + t);
    detail::query_block<Key, Value> block(
        from, {queries[t].data(), count, queries.width, queries.stride}, scale,
        {out[t].data(), count, out.width, out.stride}, scratch);
    view.for_each_slab(from, static_cast<position>(from + count - 1),
                       [&](const slab& s, token_count lifetime) { block.attend(s, lifetime); });
    block.finish(lse.empty() ? lse : lse.subspan(t * group, count * group));
  }
}

HEADWISE_NAMESPACE_END
