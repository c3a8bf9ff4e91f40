// SPDX-License-Identifier: Apache-2.0

#include "expected_bytes.hpp"

#include <cmath>

#include "numbers.hpp"

#include "headwise/blueprint/expected_rows.hpp"

namespace headwise_tool {
namespace {

constexpr const char* bytes_of_cache = "bytes of the cache";

}  // namespace

std::uint64_t expected_bytes(const headwise::head_plan& head, const headwise::token_rules& rules,
                             const cache_layout& layout) {
  const double rows = headwise::expected_rows(head, rules, layout.length);
  return full_bytes(1, static_cast<std::uint64_t>(std::llround(rows)), layout.batch,
                    layout.row_bytes);
}

std::uint64_t expected_layer_bytes(const headwise::blueprint& plan, std::uint32_t layer,
                                   const cache_layout& layout) {
  std::uint64_t bytes = 0;
  for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head)
    bytes = checked_sum(bytes, expected_bytes(plan.head({layer, head}), plan.tokens, layout),
                        bytes_of_cache);
  return bytes;
}

std::uint64_t expected_bytes(const headwise::blueprint& plan, const cache_layout& layout) {
  std::uint64_t bytes = 0;
  for (std::uint32_t layer = 0; layer < plan.shape.layers; ++layer)
    bytes = checked_sum(bytes, expected_layer_bytes(plan, layer, layout), bytes_of_cache);
  return bytes;
}

std::uint64_t full_bytes(std::uint64_t heads, std::uint64_t length, std::uint64_t batch,
                         std::uint64_t row_bytes) {
  const std::uint64_t rows =
      checked_product(checked_product(heads, length, bytes_of_cache), batch, bytes_of_cache);
  return checked_product(rows, row_bytes, bytes_of_cache);
}

}  // namespace headwise_tool
