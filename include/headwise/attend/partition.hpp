// SPDX-License-Identifier: Apache-2.0
//
// layer_partition: the attention of one layer and one query, cut for the threads that an engine
// brings. Heads are unequal, since each keeps rows of its own; so the work is cut by rows: a head
// of more than piece_rows is several pieces, whose results are merged, and the pieces are dealt out
// in order, to each worker about the same number of rows. A head that has yet to be shown its
// attention (head_view::awaits_attention) is one piece.
//
//   cut.split(step, layer, query);                              // the owner thread
//   cut.attend(worker, step, queries, scale, out, lse, scratch);  // each worker, at the same time
//   cut.merge(out, lse);                                        // one thread, when all are done
//
// Where a head is cut does not depend on the workers: any number of them gives the same bits. They
// are those of attend() for heads of one piece; merging rounds once more for the others.
// split: O(pages of the layer). merge: O(pieces * group * head_dim). No allocation after
// construction, no lock, no throw.
#pragma once

#include <cmath>

#include "headwise/attend/attend.hpp"

HEADWISE_NAMESPACE_BEGIN

// Some rows of one head of the layer.
struct attend_piece {
  std::uint32_t kv_head;
  row_range rows;
  bool whole;  // the head is one piece
};

class layer_partition {
 public:
  // max_rows: the most rows that a query will see of one head. Throws error(out_of_range) where it
  // fills the address space, and what the memory resource throws.
  layer_partition(const model_shape& shape, std::size_t max_rows, std::size_t workers,
                  std::size_t piece_rows = 1024,
                  std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : shape_(shape),
        piece_rows_(piece_rows),
        pieces_(memory),
        first_(workers + 1, memory),
        parts_(most_pieces(max_rows) * shape.group_size() * shape.head_dim, memory),
        part_lse_(most_pieces(max_rows) * shape.group_size(), memory) {
    HEADWISE_EXPECTS(workers > 0, "a partition for nobody");
    pieces_.reserve(most_pieces(max_rows));
  }

  [[nodiscard]] std::size_t workers() const noexcept { return first_.size() - 1; }
  // What the worker attends to.
  [[nodiscard]] std::span<const attend_piece> share(std::size_t worker) const noexcept {
    HEADWISE_EXPECTS(worker < workers(), "there is no such worker");
    return {pieces_.data() + first_[worker], pieces_.data() + first_[worker + 1]};
  }

  // source: a sequence, or its open step once the layer's rows are written.
  template <class Source>
  void split(const Source& source, std::uint32_t layer, position query) noexcept {
    layer_ = layer;
    query_ = query;
    pieces_.clear();
    std::size_t total = 0;
    for (std::uint32_t h = 0; h < shape_.kv_heads; ++h) {
      const auto view = source.head({layer, h});
      std::size_t seen = 0;
      view.for_each_slab(query, [&](const slab& s) { seen += s.count; });
      total += add_pieces(h, seen, view.awaits_attention(query));
    }
    deal(total);
  }
  // queries, out: [query_heads, head_dim] of the layer; lse: [query_heads], or empty. scratch: the
  // worker's own. Writes the query heads of whole pieces; the others wait for merge().
  template <class Source>
  void attend(std::size_t worker, const Source& source, const rows<const float>& queries,
              float scale, const rows<float>& out, std::span<float> lse,
              attend_scratch& scratch) noexcept {
    const std::size_t group = shape_.group_size();
    for (const attend_piece& piece : share(worker)) {
      const auto view = source.head({layer_, piece.kv_head});
      const std::size_t g = piece.kv_head * group;
      const rows<const float> own(queries[g].data(), group, queries.width, queries.stride);
      if (piece.whole) {
        headwise::attend(view, query_, own, scale, {out[g].data(), group, out.width, out.stride},
                         lse.empty() ? lse : lse.subspan(g, group), scratch);
      } else {
        const auto i = static_cast<std::size_t>(&piece - pieces_.data());
        attend_part(view, query_, piece.rows, own, scale, part(i),
                    {part_lse_.data() + i * group, group}, scratch);
      }
    }
  }
  void merge(const rows<float>& out, std::span<float> lse) noexcept {
    for (std::size_t first = 0, last = 0; first < pieces_.size(); first = last) {
      while (last < pieces_.size() && pieces_[last].kv_head == pieces_[first].kv_head) ++last;
      if (pieces_[first].whole) continue;
      const std::size_t group = shape_.group_size();
      for (std::size_t g = 0; g < group; ++g) {
        const std::size_t query_head = pieces_[first].kv_head * group + g;
        const float sum = merge_parts(first, last, g, out[query_head]);
        if (!lse.empty()) lse[query_head] = sum;
      }
    }
  }

 private:
  // A piece costs its rows and what a call costs, as so many rows.
  static constexpr std::size_t call_rows = 32;

  [[nodiscard]] std::size_t most_pieces(std::size_t max_rows) const {
    HEADWISE_EXPECTS(piece_rows_ > 0, "a partition into pieces of nothing");
    const std::size_t of_a_head =
        std::max<std::size_t>(1, max_rows / piece_rows_ + (max_rows % piece_rows_ != 0 ? 1 : 0));
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(float);
    const std::size_t elements = std::size_t{shape_.query_heads} * shape_.head_dim;
    if (elements != 0 && of_a_head > most / elements)
      raise(error_code::out_of_range, "layer_partition.max_rows", std::to_string(max_rows),
            "at most " + std::to_string(most / elements) + " pieces, which fill the address space");
    return shape_.kv_heads * of_a_head;
  }
  [[nodiscard]] static std::size_t cost(const attend_piece& piece) noexcept {
    return piece.rows.count + call_rows;
  }
  [[nodiscard]] rows<float> part(std::size_t piece) noexcept {
    const std::size_t group = shape_.group_size(), d = shape_.head_dim;
    return {parts_.data() + piece * group * d, group, d};
  }
  // Returns their cost.
  std::size_t add_pieces(std::uint32_t head, std::size_t seen, bool ranks) noexcept {
    const bool whole = ranks || seen <= piece_rows_;
    std::size_t total = 0;
    for (std::size_t first = 0; first < seen; first += pieces_.back().rows.count) {
      HEADWISE_EXPECTS(pieces_.size() < pieces_.capacity(),
                       "a layer_partition is for fewer rows than the query sees");
      pieces_.push_back({head, {first, whole ? seen : std::min(piece_rows_, seen - first)}, whole});
      total += cost(pieces_.back());
    }
    return total;
  }
  // To each worker the pieces whose middle lies in its part of the whole cost.
  void deal(std::size_t total) noexcept {
    std::size_t i = 0, before = 0;
    for (std::size_t worker = 0; worker < workers(); ++worker) {
      first_[worker] = i;
      const std::size_t end = total * (worker + 1);
      for (; i < pieces_.size() && (2 * before + cost(pieces_[i])) * workers() < 2 * end; ++i)
        before += cost(pieces_[i]);
    }
    first_[workers()] = pieces_.size();
  }
  // softmax over all rows from those over the parts: each counts by its share of the sum.
  float merge_parts(std::size_t first, std::size_t last, std::size_t g,
                    std::span<float> out) noexcept {
    const std::size_t group = shape_.group_size();
    float top = -std::numeric_limits<float>::infinity();
    for (std::size_t i = first; i < last; ++i) top = std::max(top, part_lse_[i * group + g]);
    const double base = detail::base_of(top);
    double sum = 0.0;
    for (std::size_t i = first; i < last; ++i)
      sum += std::exp(double{part_lse_[i * group + g]} - base);
    const double inverse = sum == 0.0 ? 0.0 : 1.0 / sum;
    std::fill(out.begin(), out.end(), 0.0F);
    for (std::size_t i = first; i < last; ++i) {
      const auto share =
          static_cast<float>(std::exp(double{part_lse_[i * group + g]} - base) * inverse);
      const std::span<const float> from = part(i)[g];
      for (std::size_t e = 0; e < out.size(); ++e) out[e] += share * from[e];
    }
    return static_cast<float>(base + std::log(sum));
  }

  model_shape shape_;
  std::size_t piece_rows_;
  std::uint32_t layer_ = 0;
  position query_ = 0;
  detail::flat_vector<attend_piece> pieces_;  // by head, then by row
  detail::flat_vector<std::size_t> first_;    // [workers + 1], of each worker's pieces
  detail::flat_vector<float> parts_;          // [pieces, group, head_dim]
  detail::flat_vector<float> part_lse_;       // [pieces, group]
};

HEADWISE_NAMESPACE_END
