// SPDX-License-Identifier: Apache-2.0
#include "headwise/io/map_writer.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using headwise::map_writer;
using headwise::rows;

TEST(map_writer, a_missing_row_is_named) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> prompts{{1, 2}};
  const std::vector<float> weights{1, 0, 0.5F, 0.5F};
  map_writer writer(folder.path() / "a.safetensors", {{2, 1, 1, 8}, {}, {}}, prompts);
  writer.write(0, 0, 0, 0, rows<const float>(weights.data(), 2, 2));
  writer.write(0, 1, 0, 0, rows<const float>(weights.data(), 1, 2));
  expect_error(error_code::missing, {"'0.1.attention'", "4 bytes written", "8 bytes"},
               [&] { writer.finish(); });
}

TEST(map_writer, a_row_written_twice_does_not_pass_for_another) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> prompts{{1, 2}};
  const std::vector<float> weights{1, 0, 0.5F, 0.5F};
  const rows<const float> both(weights.data(), 2, 2), first(weights.data(), 1, 2);
  map_writer writer(folder.path() / "a.safetensors", {{1, 2, 1, 8}, {}, {}}, prompts);
  writer.write(0, 0, 0, 0, both);
  writer.write(0, 0, 1, 0, first);
  expect_error(error_code::duplicate, {"'0.0.attention'", "row 0 of query head 1 again"},
               [&] { writer.write(0, 0, 1, 0, first); });
  writer.write(0, 0, 1, 1, rows<const float>(weights.data() + 2, 1, 2));
  writer.finish();
}

}  // namespace
}  // namespace headwise_tests
