// SPDX-License-Identifier: Apache-2.0
//
// map_writer: recorded attention maps into a safetensors file, as an engine makes them: any order
// of layers, heads and queries, straight to the file, so that a recording is never held in memory.
// The prompts are known first, as their lengths are the shapes. The file appears at finish(),
// whole, or not at all. Memory: a bit for each row. One thread at a time.
//
// Tensors, per prompt p and layer l: p.l.attention [query_heads, queries, keys], p.tokens I32
// [keys].
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "headwise/core/rows.hpp"
#include "headwise/io/map_format.hpp"
#include "headwise/io/safetensors_writer.hpp"

HEADWISE_NAMESPACE_BEGIN

class map_writer {
 public:
  // prompts: the token ids of each, [keys]; they are named "0", "1", ... in the file. type: F16,
  // BF16 or F32. last_queries: of each prompt only so many are written down, or all where it has
  // fewer. Throws error as safetensors_writer does.
  map_writer(const std::filesystem::path& path, const map_info& info,
             std::span<const std::vector<std::int32_t>> prompts,
             element_type type = element_type::f16, token_count last_queries = max_length)
      : shape_(info.shape),
        type_(type),
        last_queries_(last_queries),
        writer_(path, make_metadata(info), declare(info, prompts, type, last_queries)) {
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      keys_.push_back(prompts[p].size());
      written_.emplace_back(std::size_t{shape_.layers} * shape_.query_heads * queries(p), false);
      writer_.write(std::to_string(p) + ".tokens", 0, std::as_bytes(std::span(prompts[p])));
    }
  }

  // weights: [queries, width], the rows of the queries from first_query on, of which those before
  // the last ones are passed over; keys from width on have no weight. Throws error(duplicate) on a
  // row that was written before.
  void write(std::size_t prompt, std::uint32_t layer, std::uint32_t query_head,
             position first_query, rows<const float> weights) {
    HEADWISE_EXPECTS(
        prompt < keys_.size() && layer < shape_.layers && query_head < shape_.query_heads,
        "no such map");
    const std::size_t keys = keys_[prompt], before = keys - queries(prompt);
    HEADWISE_EXPECTS(weights.width <= keys && first_query + weights.count <= keys,
                     "rows beyond the prompt");
    const std::size_t passed =
        std::min(weights.count, before - std::min<std::size_t>(before, first_query));
    const std::size_t count = weights.count - passed;
    if (count == 0) return;
    const std::size_t first_row = first_query + passed - before;
    mark_rows(prompt, layer, query_head, first_row, count);
    const std::size_t row_bytes = keys * element_bytes(type_);
    buffer_.assign(count * row_bytes, std::byte{0});
    for (std::size_t i = 0; i < count; ++i)
      encode_floats(type_, weights[passed + i], buffer_.data() + i * row_bytes);
    writer_.write(name(prompt, layer), (query_head * queries(prompt) + first_row) * row_bytes,
                  buffer_);
  }

  // Throws error(missing) naming a map of which rows are missing.
  void finish() { writer_.finish(); }

 private:
  // A row written twice would hide in finish()'s count of bytes a row that was not written.
  void mark_rows(std::size_t prompt, std::uint32_t layer, std::uint32_t query_head,
                 std::size_t first_row, std::size_t count) {
    const std::size_t map = std::size_t{layer} * shape_.query_heads + query_head;
    const auto begin =
        written_[prompt].begin() + static_cast<std::ptrdiff_t>(map * queries(prompt) + first_row);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    if (const auto twice = std::find(begin, end, true); twice != end)
      raise(error_code::duplicate, writer_.path() + ": tensor " + in_quotes(name(prompt, layer)),
            "row " + std::to_string(first_row + static_cast<std::size_t>(twice - begin)) +
                " of query head " + std::to_string(query_head) + " again",
            "each row once");
    std::fill(begin, end, true);
  }

  [[nodiscard]] std::size_t queries(std::size_t prompt) const noexcept {
    return std::min<std::size_t>(keys_[prompt], last_queries_);
  }
  [[nodiscard]] static std::string name(std::size_t prompt, std::uint32_t layer) {
    return std::to_string(prompt) + "." + std::to_string(layer) + ".attention";
  }
  [[nodiscard]] static std::vector<tensor_declaration> declare(
      const map_info& info, std::span<const std::vector<std::int32_t>> prompts, element_type type,
      token_count last_queries) {
    std::vector<tensor_declaration> tensors;
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      const std::uint64_t keys = prompts[p].size();
      for (std::uint32_t layer = 0; layer < info.shape.layers; ++layer)
        tensors.push_back(
            {name(p, layer),
             type,
             {info.shape.query_heads, std::min<std::uint64_t>(keys, last_queries), keys}});
      tensors.push_back({std::to_string(p) + ".tokens", element_type::i32, {keys}});
    }
    return tensors;
  }

  model_shape shape_;
  element_type type_;
  token_count last_queries_;
  safetensors_writer writer_;
  std::vector<std::size_t> keys_;           // [prompts]
  std::vector<std::vector<bool>> written_;  // [prompts][layers, query_heads, queries]
  std::vector<std::byte> buffer_;
};

HEADWISE_NAMESPACE_END
