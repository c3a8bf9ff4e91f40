// SPDX-License-Identifier: Apache-2.0
//
// Prints what quantised rows become, in hexadecimal: the bytes of rows, what attention makes of
// them, and the file that they are saved to.
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "headwise/headwise.hpp"
#include "headwise/manager/saved_sequence.hpp"

namespace {

constexpr std::size_t head_dim = 40;

void print(const void* data, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    std::printf("%02x", static_cast<const unsigned char*>(data)[i]);
  std::printf("\n");
}

// Codes of every size, on both sides of zero.
std::vector<float> row_at(headwise::position pos) {
  std::vector<float> row(head_dim);
  for (std::size_t i = 0; i < head_dim; ++i)
    row[i] = static_cast<float>((i * 37 + pos * 11) % 64) / 32.0F - 1.0F;
  return row;
}

template <class Codec>
void print_rows() {
  std::vector<std::byte> rows(8 * Codec::row_bytes(head_dim));
  for (headwise::position pos = 0; pos < 8; ++pos)
    Codec::encode(row_at(pos), rows.data() + pos * Codec::row_bytes(head_dim));
  print(rows.data(), rows.size());
}

template <class Key, class Value>
void print_cache() {
  const std::vector<headwise::builtin_policies::variant> plan{headwise::local_window(9)};
  headwise::cache_manager<headwise::builtin_policies, Key, Value> cache({1, 1, 1, head_dim}, plan,
                                                                        {});
  auto text = cache.open();
  headwise::attend_scratch scratch(1, head_dim, 9, std::pmr::get_default_resource(),
                                   headwise::simd_width::portable);
  std::vector<float> outputs;
  for (headwise::position pos = 0; pos < 20; ++pos) {
    const std::vector<float> row = row_at(pos), query = row_at(pos + 3);
    std::vector<float> out(head_dim);
    auto step = text.try_append(headwise::token{pos});
    step->write({0, 0}, {row.data(), 1, head_dim}, {query.data(), 1, head_dim});
    headwise::attend(step->head({0, 0}), pos, {query.data(), 1, head_dim}, 0.2F,
                     {out.data(), 1, head_dim}, {}, scratch);
    std::move(*step).commit();
    outputs.insert(outputs.end(), out.begin(), out.end());
  }
  print(outputs.data(), outputs.size() * sizeof(float));
  std::ostringstream file;
  headwise::save(text, file);
  print(file.str().data(), file.str().size());
}

}  // namespace

int main() {
  print_rows<headwise::int8_row>();
  print_rows<headwise::int4_group>();
  print_cache<headwise::int8_row, headwise::int4_group>();
}
