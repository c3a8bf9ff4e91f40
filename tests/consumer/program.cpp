// SPDX-License-Identifier: Apache-2.0
// A whole program on the core alone: a layer, two KV heads with a policy each, a hundred tokens.
#include <cstdio>
#include <vector>

#include <headwise/headwise.hpp>

namespace hw = headwise;

int main() {
  const hw::model_shape shape{1, 4, 2, 64};  // layers, query heads, KV heads, head_dim
  hw::cache_manager<> cache(shape, {hw::global{}, hw::local_window(16)}, {});
  auto text = cache.open();
  hw::attend_scratch scratch(shape.group_size(), shape.head_dim, 100);
  std::vector<float> row(shape.head_dim, 0.5F), queries(2 * row.size(), 1.0F), out(queries.size());

  for (hw::position pos = 0; pos < 100; ++pos) {
    const hw::token token{pos};
    auto step = text.try_append(token);
    if (!step) return 1;  // out of memory, and nothing changed
    for (std::uint32_t h = 0; h < shape.kv_heads; ++h) {
      const hw::head_id head{0, h};
      step->write(head, {row.data(), 1, row.size()}, {row.data(), 1, row.size()});
      hw::attend(step->head(head), pos, {queries.data(), 2, row.size()}, 0.125F,
                 {out.data(), 2, row.size()}, {}, scratch);
    }
    std::move(*step).commit();
  }
  const hw::cache_stats stats = text.stats();
  std::printf("%zu of %zu rows, %zu of %zu bytes\n", stats.resident_rows, stats.full_rows,
              stats.payload_bytes, stats.full_bytes);
  return stats.resident_rows == 116 && out[0] > 0.49F ? 0 : 1;
}
