// SPDX-License-Identifier: Apache-2.0
//
// Files that were good until bytes of them were changed, cut or put in: every reader either reads
// them to the end or throws headwise::error. What is read is touched, so that a sanitizer sees a
// span that leaves the file.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/io/blueprint_json.hpp"
#include "headwise/io/map_archive.hpp"
#include "support/files.hpp"
#include "support/made_blueprint.hpp"
#include "support/made_maps.hpp"
#include "support/random.hpp"

namespace {

using namespace headwise_tests;

std::string mutated(random_source& random, std::string bytes) {
  const std::string wanted = "0123456789-{}[]\",:.eE\\\x00\x7f\xff";
  for (std::uint32_t i = random.between(1, 4); i > 0 && !bytes.empty(); --i) {
    const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
    const char c = random.one_in(2)
                       ? wanted[random.below(static_cast<std::uint32_t>(wanted.size()))]
                       : static_cast<char>(random.below(256));
    switch (random.below(4)) {
      case 0:
        bytes.insert(at, random.between(1, 3), c);
        break;
      case 1:
        bytes.erase(at, random.between(1, 8));
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      default:
        bytes[at] = c;
    }
  }
  return bytes;
}

// Returns how many of the mutants were read.
template <class Read>
int read_mutants(std::uint32_t seed, int count, const std::string& good, Read&& read) {
  random_source random(seed);
  int good_ones = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutated(random, good);
    try {
      read(bytes);
      ++good_ones;
    } catch (const headwise::error& e) {
      EXPECT_FALSE(e.place().empty());
    }
  }
  return good_ones;
}

double touch(headwise::map_archive& archive) {
  double sum = 0;
  while (const auto map = archive.next()) {
    for (std::size_t i = 0; i < map->weights.count; ++i)
      for (std::size_t j = 0; j < map->weights.width; ++j)
        sum += static_cast<double>(map->weights.at(i, j));
    for (const headwise::token& t : map->keys) sum += t.id;
  }
  return sum;
}

TEST(file_mutations, safetensors) {
  const temporary_folder folder;
  const std::string good = small_maps(
      2, "F16", ", \"vocab_size\": \"9\", \"token_classes\": \"{\\\"special\\\": [8]}\"");
  const int read = read_mutants(1, 4'000, good, [&](const std::string& bytes) {
    headwise::map_archive archive(std::vector{folder.write("maps.safetensors", bytes)});
    static_cast<void>(touch(archive));
  });
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 4'000);
}

TEST(file_mutations, npy) {
  const temporary_folder folder;
  folder.write("metadata.json", map_metadata(1));
  const std::string good =
      npy_bytes(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (4, 4), }",
                swapped(elements("F32", small_map), 4));
  folder.write("0.0.1.npy", good);
  folder.write("0.tokens.npy",
               npy_bytes(2, "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }",
                         bytes_of(std::vector<std::int64_t>{5, 6, 7, 8})));
  const int read = read_mutants(2, 3'000, good, [&](const std::string& bytes) {
    folder.write("0.0.0.npy", bytes);
    headwise::map_archive archive(std::vector{folder.path()});
    static_cast<void>(touch(archive));
  });
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 3'000);
}

// What is read must be writable and read back the same: read(write(x)) == x.
TEST(file_mutations, blueprint) {
  const std::string good = text_of(made_blueprint());
  const int read = read_mutants(3, 3'000, good, [](const std::string& bytes) {
    const headwise::blueprint plan = blueprint_of(bytes);
    EXPECT_EQ(blueprint_of(text_of(plan)), plan) << bytes;
  });
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 3'000);
}

}  // namespace
