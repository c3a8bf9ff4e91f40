// SPDX-License-Identifier: Apache-2.0
//
// Fault group J where files are concerned: absent maps, token ids, prefixes, mixed tokenizers. What
// the weights themselves must be is the profiler's to check.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/io/map_archive.hpp"
#include "support/files.hpp"
#include "support/made_maps.hpp"

namespace {

using headwise::error_code;
using headwise::map_archive;
using namespace headwise_tests;

void expect_refused(const std::string& metadata, const std::vector<made_tensor>& tensors,
                    error_code code, std::initializer_list<std::string_view> parts) {
  const temporary_folder folder;
  const auto path = folder.write("maps.safetensors", safetensors_of(metadata, tensors));
  expect_error(code, parts, [&] { const map_archive archive(std::vector{path}); });
}

TEST(fault_cases, J03_layer_absent_or_empty_in_a_file) {
  const made_tensor tokens = tokens_tensor("0", {1, 2, 3, 4});
  expect_refused(map_metadata(4),
                 {map_tensor("0", 0), map_tensor("0", 1), map_tensor("0", 3), tokens},
                 error_code::missing, {"maps.safetensors", "layer 2", "4 layers"});
  expect_refused(map_metadata(4),
                 {map_tensor("0", 0), map_tensor("0", 1), map_tensor("0", 2), tokens},
                 error_code::missing, {"maps.safetensors", "layer 3", "4 layers"});
  expect_refused(map_metadata(2), {map_tensor("0", 0), {"0.1.attention", "F32", "[0]", ""}, tokens},
                 error_code::missing, {"0.1.attention", "empty map of layer 1"});
  expect_refused(map_metadata(4'000'000), {map_tensor("0", 0), tokens}, error_code::missing,
                 {"layer 1", "4000000 layers"});
  expect_refused(map_metadata(1), {map_tensor("0", 0), map_tensor("0", 1), tokens},
                 error_code::shape_mismatch, {"layer 1", "1 layers"});
  expect_refused(map_metadata(1), {tokens}, error_code::missing, {"no maps"});
  expect_refused(map_metadata(1), {map_tensor("0", 0)}, error_code::missing, {"'0.tokens'"});
}

TEST(fault_cases, J04_fewer_queries_than_keys_in_a_file) {
  const std::vector<double> last{0.5, 0.5, 0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0, 0, 1};
  const std::string bytes = elements("F16", last);
  const temporary_folder folder;
  const auto path = folder.write(
      "maps.safetensors",
      safetensors_of(map_metadata(1), {{"0.0.attention", "F16", "[2, 3, 5]", bytes + bytes},
                                       tokens_tensor("0", {1, 2, 3, 4, 5})}));
  map_archive archive(std::vector{path});
  const auto map = archive.next();
  ASSERT_TRUE(map);
  EXPECT_EQ(map->first_query, 2U);
  EXPECT_EQ(map->weights.at(2, 4), 1.0F);
  expect_refused(
      map_metadata(1),
      {{"0.0.attention", "F16", "[2, 5, 3]", bytes + bytes}, tokens_tensor("0", {1, 2, 3})},
      error_code::shape_mismatch, {"[5, 3]", "queries"});
}

// Handed on as they are, so that the profiler can name layer, head and row.
TEST(fault_cases, J05_NaN_rows_in_a_file) {
  std::vector<double> values = small_map;
  values[0] = std::numeric_limits<double>::quiet_NaN();
  for (const std::string dtype : {"F16", "BF16", "F32", "F64"}) {
    const std::string bytes = elements(dtype, values);
    const temporary_folder folder;
    const auto path = folder.write(
        "maps.safetensors",
        safetensors_of(map_metadata(1), {{"0.0.attention", dtype, "[2, 4, 4]", bytes + bytes},
                                         tokens_tensor("0", {1, 2, 3, 4})}));
    map_archive archive(std::vector{path});
    EXPECT_TRUE(std::isnan(archive.next()->weights.at(0, 0))) << dtype;
  }
}

TEST(fault_cases, J08_token_ids_in_a_file) {
  for (const std::int64_t bad :
       {std::int64_t{-1}, std::int64_t{100}, std::int64_t{1} << 31, (std::int64_t{1} << 32) + 5})
    expect_refused(map_metadata(1, ", \"vocab_size\": \"100\""),
                   {map_tensor("0", 0), tokens_tensor("0", {5, bad, 7, 8})},
                   error_code::out_of_range, {"'0.tokens'[1]", "got " + std::to_string(bad)});
  for (const std::int64_t bad : {std::int64_t{-1}, (std::int64_t{1} << 32) + 5})
    expect_refused(map_metadata(1), {map_tensor("0", 0), tokens_tensor("0", {5, bad, 7, 8})},
                   error_code::out_of_range, {"'0.tokens'[1]", "got " + std::to_string(bad)});
  expect_refused(map_metadata(1, ", \"vocab_size\": \"4000000000\""),
                 {map_tensor("0", 0), tokens_tensor("0", {5, 6, 7, 8})}, error_code::out_of_range,
                 {"vocab_size", "4000000000"});
}

TEST(fault_cases, J10_files_of_two_tokenizers) {
  const auto differing = [](const std::string& first, const std::string& second,
                            std::initializer_list<std::string_view> parts) {
    const temporary_folder folder;
    const std::vector paths{folder.write("a.safetensors", small_maps(1, "F32", first)),
                            folder.write("b.safetensors", small_maps(1, "F32", second))};
    expect_error(error_code::shape_mismatch, parts, [&] { const map_archive archive(paths); });
  };
  differing(", \"vocab_size\": \"32000\"", ", \"vocab_size\": \"128256\"",
            {"b.safetensors", "vocab_size", "128256", "32000", "a.safetensors"});
  differing(", \"tokenizer\": \"aa\"", ", \"tokenizer\": \"bb\"",
            {"b.safetensors", "tokenizer", "'bb'", "'aa'"});
  differing(", \"model\": \"aa\"", ", \"model\": \"bb\"", {"b.safetensors", "model"});
  differing(", \"sink_count\": \"1\"", ", \"sink_count\": \"2\"", {"b.safetensors", "sink_count"});
}

}  // namespace
