// SPDX-License-Identifier: Apache-2.0
#include "headwise/io/map_writer.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/io/map_archive.hpp"
#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using headwise::map_writer;
using headwise::position;
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

// Of five and of two tokens the last three queries, written in pieces that begin before them.
TEST(map_writer, writes_down_the_last_queries_alone) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> prompts{{1, 2, 3, 4, 5}, {6, 7}};
  const auto weight = [](std::size_t query, std::size_t key) {
    return key == query ? 1.0F - 0.125F * static_cast<float>(query) : key < query ? 0.125F : 0.0F;
  };
  const std::filesystem::path file = folder.path() / "a.safetensors";
  map_writer writer(file, {{1, 2, 1, 8}, {}, {}}, prompts, headwise::element_type::f16, 3);
  const auto write = [&](std::size_t prompt, std::uint32_t head, position first, position end) {
    std::vector<float> weights;
    for (position query = first; query < end; ++query)
      for (std::size_t key = 0; key < end; ++key) weights.push_back(weight(query, key));
    writer.write(prompt, 0, head, first, {weights.data(), end - first, end});
  };
  for (const std::uint32_t head : {0U, 1U}) {
    write(0, head, 0, 1);
    write(0, head, 1, 2);
    write(0, head, 1, 4);
    if (head == 0) {
      expect_error(error_code::duplicate, {"'0.0.attention'", "row 1 of query head 0 again"},
                   [&] { write(0, 0, 3, 5); });
    }
    write(0, head, 4, 5);
    write(1, head, 0, 2);
  }
  writer.finish();
  const std::vector<std::filesystem::path> files{file};
  headwise::map_archive archive(files);
  for (std::size_t maps = 0; maps < 4; ++maps) {
    const auto map = archive.next();
    ASSERT_TRUE(map);
    const std::size_t keys = map->keys.size();
    EXPECT_EQ(map->first_query, keys == 5 ? 2U : 0U);
    ASSERT_EQ(map->weights.count, keys == 5 ? 3U : 2U);
    for (std::size_t row = 0; row < map->weights.count; ++row) {
      std::vector<float> got(keys);
      map->weights.copy_row(row, got);
      for (std::size_t key = 0; key < keys; ++key)
        EXPECT_EQ(got[key], weight(map->first_query + row, key)) << maps << ' ' << row;
    }
  }
  EXPECT_FALSE(archive.next());
}

}  // namespace
}  // namespace headwise_tests
