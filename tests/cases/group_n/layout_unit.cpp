// SPDX-License-Identifier: Apache-2.0
// Two units with different build flags compare layouts and hand a cache to each other.
#include "exercise.hpp"
#include "layout.hpp"

std::vector<std::size_t> layout_elsewhere();
std::size_t append_elsewhere(headwise::cache_manager<>::sequence_type& text);

#ifdef WITH_MAIN
int main() {
  if (layout_of_core() != layout_elsewhere()) return 1;
  headwise::cache_manager<> cache({1, 2, 1, 8}, {headwise::local_window(3)}, {});
  auto text = cache.open();
  runner<headwise::cache_manager<>> run(cache);
  run.append(text, 2, headwise::attend_scope::every_query, true);
  if (append_elsewhere(text) != 3 || text.length() != 4) return 2;
  run.append(text, 1, headwise::attend_scope::every_query, true);
  return text.stats().resident_rows == 3 ? 0 : 3;
}
#else
std::vector<std::size_t> layout_elsewhere() {
  return layout_of_core();
}

std::size_t append_elsewhere(headwise::cache_manager<>::sequence_type& text) {
  const auto tokens = tokens_from(text.length(), 2);
  const std::vector<float> row = rows_from(text.length(), 2, 8, 0);
  auto step = text.try_append(tokens);
  if (!step) return 0;
  step->write({0, 0}, {row.data(), 2, 8}, {row.data(), 2, 8});
  std::move(*step).commit();
  return text.stats().resident_rows;
}
#endif
