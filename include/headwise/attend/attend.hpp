// SPDX-License-Identifier: Apache-2.0
//
// Decode attention of one query position over one head: softmax(scale * Q K^T) V over exactly the
// rows that the query sees, for all query heads of the group at once. One pass over the K rows, a
// stable softmax in float, one pass over the V rows; rows are decoded in registers, in vectors as
// wide as the processor has (row_kernels.hpp, which says what quantised keys cost a logit). The
// result does not depend on how the rows are spread over slabs; its last bits depend on the width.
// In an open step a head that ranks is shown the probabilities, once for each query. No allocation,
// no lock, no throw. Different heads may be attended by different threads, each with a scratch of
// its own.
#pragma once

#include <array>
#include <limits>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "headwise/attend/row_kernels.hpp"
#include "headwise/core/flat_vector.hpp"
#include "headwise/manager/head_view.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// Room for rows of a codec that has no kernels, as floats.
class decoded_rows {
 public:
  static constexpr std::size_t count = 16;

  decoded_rows(std::uint32_t head_dim, std::pmr::memory_resource* memory)
      : head_dim_(head_dim), floats_(count * head_dim, memory) {}
  // At most `count` rows, which are valid until the next.
  template <row_codec Codec>
  [[nodiscard]] row_block decode(row_block block) noexcept {
    for (std::size_t r = 0; r < block.size(); ++r) {
      float* const row = floats_.data() + r * head_dim_;
      Codec::decode(block[r], {row, head_dim_});
      rows_[r] = reinterpret_cast<const std::byte*>(row);
    }
    return {rows_.data(), block.size()};
  }

 private:
  std::uint32_t head_dim_;
  flat_vector<float> floats_;  // [count, head_dim]
  std::array<const std::byte*, count> rows_{};
};

}  // namespace detail

// Some of the rows that a query sees, in the order of for_each_slab.
struct row_range {
  std::size_t first = 0;
  std::size_t count = std::numeric_limits<std::size_t>::max();
};

// Room for one call of attend at a time, and the width that it computes in; belongs to one thread.
class attend_scratch {
 public:
  // max_rows: the most rows that a query will see. 4 * (group_size * max_rows + 16 * head_dim)
  // bytes. width: one that has_simd(). Throws error(out_of_range) where it fills the address space.
  attend_scratch(std::uint32_t group_size, std::uint32_t head_dim, std::size_t max_rows,
                 std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                 simd_width width = widest_simd())
      : width_(width),
        group_size_(group_size),
        head_dim_(head_dim),
        max_rows_(max_rows),
        decoded_(head_dim, memory),
        weights_(checked_size(group_size, max_rows), memory) {}

  [[nodiscard]] std::uint32_t group_size() const noexcept { return group_size_; }
  [[nodiscard]] std::size_t max_rows() const noexcept { return max_rows_; }
  // The probabilities of the last attend, [group_size, rows seen], in the order of for_each_slab.
  [[nodiscard]] rows<const float> weights() const noexcept {
    return {weights_.data(), group_size_, seen_, max_rows_};
  }

 private:
  [[nodiscard]] static std::size_t checked_size(std::size_t group_size, std::size_t max_rows) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(float);
    if (group_size != 0 && max_rows > most / group_size)
      raise(error_code::out_of_range, "attend_scratch.max_rows", std::to_string(max_rows),
            "at most " + std::to_string(most / group_size) + ", which fills the address space");
    return group_size * max_rows;
  }

  template <row_codec Key, row_codec Value>
  friend void attend_part(const head_view<Key, Value>&, position, const row_range&,
                          rows<const float>, float, rows<float>, std::span<float>,
                          attend_scratch&) noexcept;

  simd_width width_;
  std::uint32_t group_size_;
  std::uint32_t head_dim_;
  std::size_t max_rows_;
  std::size_t seen_ = 0;
  detail::decoded_rows decoded_;
  detail::flat_vector<float> weights_;  // [group_size, max_rows]: logits, then probabilities
};

namespace detail {

// What the kernels read: rows of the codec itself, or floats that it was decoded to.
template <row_codec Codec>
using kernel_codec = std::conditional_t<vectorised_codec<Codec>, Codec, f32>;

// fn(block, first) for rows of kernel_codec<Codec>, `first` being the number of the first in
// `block`, whose rows are of Codec.
template <row_codec Codec, class Fn>
void with_kernel_rows(row_block block, decoded_rows& decoded, Fn&& fn) {
  if constexpr (vectorised_codec<Codec>) {
    fn(block, std::size_t{0});
  } else {
    for (std::size_t first = 0; first < block.size(); first += decoded_rows::count)
      fn(decoded.template decode<Codec>(
             block.subspan(first, std::min(decoded_rows::count, block.size() - first))),
         first);
  }
}
// fn(slab) for the rows of a range.
template <row_codec Key, row_codec Value, class Fn>
void for_each_slab_in(const head_view<Key, Value>& view, position query, row_range range, Fn&& fn) {
  view.for_each_slab(query, [&](slab s) {
    const auto skipped = static_cast<std::uint32_t>(std::min<std::size_t>(range.first, s.count));
    range.first -= skipped;
    s.positions += skipped;
    s.keys += skipped * Key::row_bytes(view.head_dim());
    s.values += skipped * Value::row_bytes(view.head_dim());
    s.count = static_cast<std::uint32_t>(std::min<std::size_t>(range.count, s.count - skipped));
    range.count -= s.count;
    if (s.count > 0) fn(s);
  });
}
// Rows of a block: 4 KiB of pointers. With 256 cold f16 rows of windows, whose pages begin
// anywhere, took a sixth longer than those of a head that keeps all (Zen 3); with 512 they do not.
inline constexpr std::size_t block_rows = 512;

// fn(block, rows before it) for the rows of Codec in a range: what `rows` of a slab is. Returns
// their number.
template <row_codec Codec, class View, class Fn>
std::size_t read_rows(const View& view, position query, const row_range& range,
                      const std::byte* slab::*rows, const Fn& fn) {
  std::array<const std::byte*, block_rows> block;
  const std::size_t row_bytes = Codec::row_bytes(view.head_dim());
  std::size_t count = 0, before = 0;
  const auto read = [&] {
    fn(row_block(block.data(), count), before);
    before += std::exchange(count, 0);
  };
  for_each_slab_in(view, query, range, [&](const slab& s) {
    for (std::uint32_t r = 0; r < s.count; ++r) {
      block[count++] = s.*rows + r * row_bytes;
      if (count == block.size()) read();
    }
  });
  if (count > 0) read();
  return before;
}

}  // namespace detail

// attend over a part of the rows that the query sees, at least one: out and lse of the parts make
// those of the whole (attend/partition.hpp). Shows nothing to a head that ranks.
template <row_codec Key, row_codec Value>
void attend_part(const head_view<Key, Value>& view, position query, const row_range& part,
                 rows<const float> queries, float scale, rows<float> out, std::span<float> lse,
                 attend_scratch& scratch) noexcept {
  HEADWISE_EXPECTS(queries.count == view.group_size() && queries.count == scratch.group_size_ &&
                       out.count == queries.count,
                   "attend takes the query rows of one whole group");
  HEADWISE_EXPECTS(view.head_dim() == scratch.head_dim_ && queries.width == scratch.head_dim_ &&
                       out.width == scratch.head_dim_,
                   "a row of attend is not head_dim wide");
  HEADWISE_EXPECTS(lse.empty() || lse.size() == queries.count,
                   "lse holds one number for each query head");
  HEADWISE_EXPECTS(view.shows_own_row(query), "the query's own row is not written yet");

  const detail::row_kernels key = detail::row_kernels_at<detail::kernel_codec<Key>>(scratch.width_);
  const detail::row_kernels value =
      detail::row_kernels_at<detail::kernel_codec<Value>>(scratch.width_);
  float* const weights = scratch.weights_.data();
  const std::size_t stride = scratch.max_rows_;
  const auto multiply = [&](detail::row_block block, std::size_t before) {
    HEADWISE_EXPECTS(before + block.size() <= stride, "attend_scratch has too few rows");
    detail::with_kernel_rows<Key>(block, scratch.decoded_, [&](auto some, std::size_t at) {
      key.dots(some, queries, scale, weights + before + at, stride);
    });
  };
  const auto add = [&](detail::row_block block, std::size_t before) {
    detail::with_kernel_rows<Value>(block, scratch.decoded_, [&](auto some, std::size_t at) {
      value.sums(some, weights + before + at, stride, out);
    });
  };
  scratch.seen_ = detail::read_rows<Key>(view, query, part, &slab::keys, multiply);
  HEADWISE_EXPECTS(scratch.seen_ > 0, "a part of the rows holds none");

  const auto softmax = detail::logit_kernels_at(scratch.width_).softmax;
  for (std::size_t g = 0; g < queries.count; ++g) {
    const float log_sum = softmax({weights + g * stride, scratch.seen_});
    if (!lse.empty()) lse[g] = log_sum;
    std::fill(out[g].begin(), out[g].end(), 0.0F);
  }
  detail::read_rows<Value>(view, query, part, &slab::values, add);
}

// queries, out: [group_size, head_dim]; the query heads of view's head, in order. Where all logits
// of a query head are -inf, out is 0 and lse -inf. query: their
// position. lse: [group_size], log of the sum of exponentials, or empty. scratch: at least as many
// rows as the query sees. O(group_size * rows seen * head_dim).
template <row_codec Key, row_codec Value>
void attend(const head_view<Key, Value>& view, position query, rows<const float> queries,
            float scale, rows<float> out, std::span<float> lse, attend_scratch& scratch) noexcept {
  attend_part(view, query, {}, queries, scale, out, lse, scratch);
  if (view.awaits_attention(query)) view.observe(query, scratch.weights());
}

HEADWISE_NAMESPACE_END
