// SPDX-License-Identifier: Apache-2.0
//
// Fault group I, .npy: versions, byte orders and types that a minimal reader trips over.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/io/map_archive.hpp"
#include "headwise/io/npy_reader.hpp"
#include "headwise/profile/profiler.hpp"
#include "support/files.hpp"
#include "support/made_maps.hpp"

namespace {

using headwise::error_code;
using headwise::map_archive;
using headwise::npy_reader;
using namespace headwise_tests;

std::string dictionary(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

const std::string small_f4 = dictionary("'<f4'", "(4, 4)");

void expect_npy_refused(const std::string& bytes, error_code code,
                        std::initializer_list<std::string_view> parts) {
  const temporary_folder folder;
  const auto path = folder.write("map.npy", bytes);
  expect_error(code, parts, [&] { const npy_reader reader(path); });
}

// A set of one layer whose two maps are the file `map`.
headwise::blueprint profiled(const std::string& map) {
  const temporary_folder folder;
  folder.write("metadata.json", map_metadata(1));
  folder.write("0.0.0.npy", map);
  folder.write("0.0.1.npy", map);
  folder.write("0.tokens.npy", npy_bytes(1, dictionary("'<i8'", "(4,)"),
                                         bytes_of(std::vector<std::int64_t>{5, 6, 7, 8})));
  map_archive archive(std::vector{folder.path()});
  return headwise::profile(archive, archive.rules(), archive.fingerprint());
}

TEST(fault_cases, I05_truncated_npy) {
  const std::string good = npy_bytes(1, small_f4, elements("F32", small_map));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    expect_npy_refused(good.substr(0, bytes), error_code::truncated, {"map.npy"});
  expect_npy_refused(good.substr(0, good.size() - 1), error_code::truncated,
                     {"map.npy", "63 bytes", "64 bytes"});
  expect_npy_refused(good + "x", error_code::malformed, {"map.npy", "65 bytes", "64 bytes"});
}

TEST(fault_cases, I13_npy_versions_and_header_lengths) {
  const std::string data = elements("F32", small_map);
  const temporary_folder folder;
  const auto loads = [&](int version, std::size_t header_bytes) {
    const auto path = folder.write("map.npy", npy_bytes(version, small_f4, data, header_bytes));
    const npy_reader reader(path);
    EXPECT_EQ(std::vector<std::uint64_t>(reader.shape().begin(), reader.shape().end()),
              (std::vector<std::uint64_t>{4, 4}));
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>(reader.bytes().data()), reader.bytes().size()),
        data);
  };
  for (const std::size_t bytes : {118U, 246U, 502U, 40'000U}) loads(1, bytes);
  for (const int version : {2, 3})
    for (const std::size_t bytes : {118U, 502U, 40'000U, 70'000U}) loads(version, bytes);
  expect_npy_refused(npy_bytes(4, small_f4, data), error_code::unsupported,
                     {"map.npy", "version 4"});
  expect_npy_refused("\x93NUMPX" + npy_bytes(1, small_f4, data).substr(6), error_code::malformed,
                     {"map.npy", "93 4e 55 4d 50 58"});
  std::string long_header = npy_bytes(2, small_f4, data);
  long_header.replace(8, 4, "\xff\xff\xff\xff");
  expect_npy_refused(long_header, error_code::truncated, {"map.npy", "4294967295"});
}

TEST(fault_cases, I14_byte_order) {
  const std::string f4 = elements("F32", small_map), f8 = elements("F64", small_map);
  const headwise::blueprint expected = profiled(npy_bytes(1, small_f4, f4));
  const auto big = [&](const std::string& descr, const std::string& data, std::size_t size) {
    return profiled(npy_bytes(1, dictionary(descr, "(4, 4)"), swapped(data, size)));
  };
  EXPECT_EQ(big("'>f4'", f4, 4), expected);
  EXPECT_EQ(big("'>f8'", f8, 8), expected);
  EXPECT_EQ(big("'>f2'", elements("F16", small_map), 2), expected);
  EXPECT_EQ(profiled(npy_bytes(1, dictionary("'=f4'", "(4, 4)"), f4)), expected);
  EXPECT_EQ(profiled(npy_bytes(1, dictionary("'<f8'", "(4, 4)"), f8)), expected);
  expect_npy_refused(npy_bytes(1, dictionary("'|u1'", "(4, 4)"), std::string(16, '\0')),
                     error_code::unsupported, {"map.npy", "|u1"});
}

TEST(fault_cases, I16_strange_npy_types) {
  const auto refused = [](const std::string& text, error_code code,
                          std::initializer_list<std::string_view> parts) {
    expect_npy_refused(npy_bytes(1, text, std::string(64, '\0')), code, parts);
  };
  refused("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (8,), }",
          error_code::malformed, {"map.npy", "descr", "[('a', '<f4')"});
  refused(dictionary("'|O'", "(8,)"), error_code::unsupported, {"map.npy", "descr", "|O"});
  refused("{'descr': '<f4', 'shape': (4, 4), }", error_code::missing, {"map.npy", "fortran_order"});
  refused("{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4), }", error_code::unsupported,
          {"map.npy", "fortran_order True"});
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), 'extra': 1}",
          error_code::malformed, {"map.npy", "'extra'"});
  refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)}",
          error_code::malformed, {"map.npy", "'descr'"});
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 4), }", error_code::malformed,
          {"map.npy", "shape", "-4"});
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), } or __import__('os')",
          error_code::malformed, {"map.npy", "or __import__"});
  refused("{'descr': '<f\\'4', 'fortran_order': False, 'shape': (4, 4), }", error_code::malformed,
          {"map.npy"});
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
          error_code::truncated, {"map.npy", "more than 2^64"});
  refused("{", error_code::malformed, {"map.npy", "the end of the header"});

  // Arrays that a reader may read, but no map.
  const auto no_map = [](const std::string& shape, std::size_t floats) {
    const std::string map = npy_bytes(1, dictionary("'<f4'", shape), std::string(4 * floats, '\0'));
    expect_error(error_code::shape_mismatch, {"0.0.0.npy", "[queries, keys]"},
                 [&] { profiled(map); });
  };
  no_map("()", 1);
  no_map("(5,)", 5);
  no_map("(2, 3, 4, 4, 1)", 96);
}

}  // namespace
