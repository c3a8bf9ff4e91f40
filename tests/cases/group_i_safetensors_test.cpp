// SPDX-License-Identifier: Apache-2.0
//
// Fault group I, safetensors: hostile, cut and strange files.
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/io/map_archive.hpp"
#include "headwise/io/safetensors_reader.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/allocation_watch.hpp"
#include "support/files.hpp"
#include "support/made_maps.hpp"

namespace {

using headwise::error;
using headwise::error_code;
using headwise::map_archive;
using headwise::safetensors_reader;
using namespace headwise_tests;

// What a reader needs for itself, whatever the file: paths, messages, the first blocks of vectors.
constexpr std::size_t own_needs = 4096;

std::string one_tensor(const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
  return "{\"0.1.attention\": {\"dtype\": \"" + dtype + "\", \"shape\": " + shape +
         (offsets.empty() ? "" : ", \"data_offsets\": " + offsets) + "}}";
}

void expect_safetensors_refused(const std::string& bytes, error_code code,
                                std::initializer_list<std::string_view> parts) {
  const temporary_folder folder;
  const auto path = folder.write("maps.safetensors", bytes);
  const allocation_watch watch;
  expect_error(code, parts, [&] { const safetensors_reader reader(path); });
  EXPECT_LE(watch.largest(), std::max(bytes.size(), own_needs));
}

headwise::blueprint profiled(const std::filesystem::path& path) {
  map_archive archive(std::vector{path});
  return headwise::profile(archive, archive.rules(), archive.fingerprint());
}

TEST(fault_cases, I01_header_length) {
  const std::string header = one_tensor("F32", "[1, 1, 4, 4]", "[0, 64]");
  const std::string good = safetensors_bytes(header, std::string(64, '\0'));
  const auto claiming = [&](std::uint64_t length) {
    return little_endian(length) + good.substr(8);
  };
  const std::string size = std::to_string(good.size());
  expect_safetensors_refused(claiming(0xfffffffffffffffb), error_code::malformed,
                             {"maps.safetensors", "18446744073709551611", size});
  expect_safetensors_refused(claiming(std::uint64_t{1} << 63), error_code::malformed,
                             {"maps.safetensors", "9223372036854775808", size});
  expect_safetensors_refused(claiming(good.size() - 7), error_code::truncated,
                             {"maps.safetensors", std::to_string(good.size() - 7), size});
  expect_safetensors_refused(claiming(0), error_code::malformed,
                             {"maps.safetensors", "a header of 0 bytes", size});
  for (const std::size_t bytes : {0U, 3U, 7U})
    expect_safetensors_refused(good.substr(0, bytes), error_code::truncated,
                               {"maps.safetensors", std::to_string(bytes) + " bytes"});
  std::string claimed = claiming(100'000'001).substr(0, 200);
  expect_safetensors_refused(claimed, error_code::malformed, {"maps.safetensors", "100000001"});
  claimed = claiming(99'999'999).substr(0, 200);
  expect_safetensors_refused(claimed, error_code::truncated, {"maps.safetensors", "99999999"});
}

TEST(fault_cases, I03_shape_and_range_disagree) {
  for (const int end : {60, 68})
    expect_safetensors_refused(
        safetensors_bytes(one_tensor("F32", "[1, 1, 4, 4]", "[0, " + std::to_string(end) + "]"),
                          std::string(static_cast<std::size_t>(end), '\0')),
        error_code::shape_mismatch, {"0.1.attention", "64 bytes", std::to_string(end) + " bytes"});
  expect_safetensors_refused(
      safetensors_bytes(one_tensor("F32", "[4294967296, 4294967296, 2]", "[0, 0]"), ""),
      error_code::shape_mismatch, {"0.1.attention", "more than 2^64"});
}

TEST(fault_cases, I04_offsets) {
  const auto refused = [](const std::string& offsets, error_code code, std::string_view field) {
    expect_safetensors_refused(
        safetensors_bytes(one_tensor("F32", "[1, 1, 4, 4]", offsets), std::string(64, '\0')), code,
        {"0.1.attention", field});
  };
  refused("[64, 0]", error_code::malformed, "/data_offsets");
  refused("[-4, 60]", error_code::out_of_range, "/data_offsets/0");
  refused("[0]", error_code::malformed, "/data_offsets");
  refused("[0, 64, 128]", error_code::malformed, "/data_offsets");
  refused("[\"0\", \"64\"]", error_code::malformed, "/data_offsets/0");
  refused("[0, 1e30]", error_code::out_of_range, "/data_offsets/1");
  refused("[0, 18446744073709551615]", error_code::out_of_range, "/data_offsets/1");
  refused("null", error_code::malformed, "/data_offsets");
  refused("", error_code::missing, "/data_offsets");
}

TEST(fault_cases, I05_truncated_safetensors) {
  const std::string good = small_maps(2);
  const temporary_folder folder;
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    const auto path = folder.write("cut.safetensors", std::string_view(good).substr(0, bytes));
    expect_error(error_code::truncated, {"cut.safetensors"},
                 [&] { const map_archive archive(std::vector{path}); });
  }
  // The last tensor is the tokens, 32 bytes behind two maps of 128.
  const auto path =
      folder.write("cut.safetensors", std::string_view(good).substr(0, good.size() - 1));
  expect_error(error_code::truncated, {"0.tokens", "287 bytes", "288 bytes"},
               [&] { const map_archive archive(std::vector{path}); });
}

TEST(fault_cases, I06_unaligned_data) {
  for (const std::string dtype : {"F16", "F32", "F64"})
    for (std::size_t shift = 0; shift < 8; ++shift) {
      const std::string maps = small_maps(1, dtype);
      const std::size_t header = maps.size() - 2 * elements(dtype, small_map).size() - 32 - 8;
      std::string padded = maps.substr(8, header) + std::string(8 - header % 8 + shift, ' ');
      const temporary_folder folder;
      const auto path =
          folder.write("maps.safetensors", safetensors_bytes(padded, maps.substr(8 + header)));
      map_archive archive(std::vector{path});
      for (int head = 0; head < 2; ++head) {
        const auto map = archive.next();
        ASSERT_TRUE(map);
        for (std::size_t i = 0; i < small_map.size(); ++i)
          EXPECT_EQ(static_cast<double>(map->weights.at(i / 4, i % 4)), small_map[i])
              << dtype << shift;
        EXPECT_EQ(map->keys[3].id, 8);
      }
    }
}

TEST(fault_cases, I07_overlap_hole_and_tail) {
  const auto two = [](const std::string& first, const std::string& second) {
    const auto tensor = [](const std::string& name, const std::string& offsets) {
      return "\"" + name +
             "\": {\"dtype\": \"F32\", \"shape\": [16], \"data_offsets\": " + offsets + "}";
    };
    return "{" + tensor("first", first) + ", " + tensor("second", second) + "}";
  };
  expect_safetensors_refused(safetensors_bytes(two("[0, 64]", "[32, 96]"), std::string(96, '\0')),
                             error_code::malformed, {"'first'", "'second'", "byte 32"});
  expect_safetensors_refused(safetensors_bytes(two("[0, 64]", "[80, 144]"), std::string(144, '\0')),
                             error_code::malformed, {"data byte 64", "16 bytes"});
  expect_safetensors_refused(safetensors_bytes(two("[0, 64]", "[64, 128]"), std::string(133, '\0')),
                             error_code::malformed, {"data byte 128", "5 bytes"});
}

TEST(fault_cases, I08_empty_tensors) {
  const temporary_folder folder;
  std::vector<made_tensor> tensors{
      map_tensor("0", 0), {"unrelated", "F32", "[0]", ""}, tokens_tensor("0", {1, 2, 3, 4})};
  const auto good = folder.write("good.safetensors", safetensors_of(map_metadata(1), tensors));
  EXPECT_EQ(map_archive(std::vector{good}).prompts(), 1U);

  tensors = {{"0.0.attention", "F32", "[1, 2, 0, 0]", ""}, tokens_tensor("0", {})};
  const auto empty = folder.write("empty.safetensors", safetensors_of(map_metadata(1), tensors));
  expect_error(error_code::missing, {"'0.0.attention'", "empty map of layer 0"},
               [&] { const map_archive archive(std::vector{empty}); });
}

TEST(fault_cases, I09_tensor_twice) {
  const std::string tensor =
      "\"attn.0\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}";
  expect_safetensors_refused(
      safetensors_bytes("{" + tensor + ", " + tensor + "}", std::string(4, '\0')),
      error_code::duplicate, {"'attn.0'"});
}

TEST(fault_cases, I10_element_types) {
  const temporary_folder folder;
  headwise::blueprint expected;
  for (const std::string dtype : {"F64", "F32", "F16", "BF16"}) {
    const auto path = folder.write("maps.safetensors", small_maps(1, dtype));
    const headwise::blueprint plan = profiled(path);
    if (dtype == "F64") expected = plan;
    EXPECT_EQ(plan, expected) << dtype;
  }
  EXPECT_EQ(expected.heads.size(), 1U);
  EXPECT_FALSE(expected.heads[0].candidates.empty());

  for (const auto& [dtype, bytes] : std::vector<std::pair<std::string, std::size_t>>{
           {"F8_E4M3", 32}, {"I64", 256}, {"BOOL", 32}, {"f32", 128}, {"X", 32}}) {
    const auto path = folder.write(
        "maps.safetensors", safetensors_of(map_metadata(1), {{"0.0.attention", dtype, "[2, 4, 4]",
                                                              std::string(bytes, '\0')},
                                                             tokens_tensor("0", {1, 2, 3, 4})}));
    expect_error(error_code::unsupported, {"0.0.attention", dtype},
                 [&] { const map_archive archive(std::vector{path}); });
  }
}

// 5 GiB with one map at 4.5 GiB. A sparse file: it takes no room.
TEST(fault_cases, I17_beyond_4_GiB) {
  if constexpr (sizeof(std::size_t) < 8) GTEST_SKIP() << "needs a 64-bit address space";
  const temporary_folder folder;
  const auto path = folder.path() / "large.safetensors";
  constexpr std::uint64_t before = 4'831'838'208, after = 536'870'912;
  const std::string map = elements("F32", small_map) + elements("F32", small_map);
  const auto range = [](std::uint64_t begin, std::uint64_t bytes) {
    return "[" + std::to_string(begin) + ", " + std::to_string(begin + bytes) + "]}";
  };
  const auto filler = [&](std::uint64_t begin, std::uint64_t bytes) {
    return "{\"dtype\": \"U8\", \"shape\": [" + std::to_string(bytes) +
           "], \"data_offsets\": " + range(begin, bytes);
  };
  const std::string tokens = bytes_of(std::vector<std::int64_t>{1, 2, 3, 4});
  const std::string header =
      "{\"__metadata__\": " + map_metadata(1) + ", \"before\": " + filler(0, before) +
      ", \"0.0.attention\": {\"dtype\": \"F32\", \"shape\": [2, 4, 4], \"data_offsets\": " +
      range(before, 128) +
      ", \"0.tokens\": {\"dtype\": \"I64\", \"shape\": [4], \"data_offsets\": " +
      range(before + 128, 32) + ", \"after\": " + filler(before + 160, after) + "}";
  {
    std::ofstream out(path, std::ios::binary);
    out << little_endian(std::uint64_t{header.size()}) << header;
    out.seekp(static_cast<std::streamoff>(8 + header.size() + before));
    out << map << tokens;
    ASSERT_TRUE(out);
  }
  std::error_code problem;
  std::filesystem::resize_file(path, 8 + header.size() + before + 160 + after, problem);
  if (problem) GTEST_SKIP() << "no sparse files here: " << problem.message();

  map_archive archive(std::vector{path});
  const auto view = archive.next();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->weights.at(3, 2), 0.125F);
  EXPECT_EQ(view->keys[3].id, 4);
}

}  // namespace
