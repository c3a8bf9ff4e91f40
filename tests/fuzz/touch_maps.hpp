// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "fuzz/target.hpp"

#include "headwise/io/map_archive.hpp"

namespace headwise_tests {

// Every map and token of a file or folder of recorded maps, twice.
inline void touch_maps(const std::filesystem::path& path) {
  headwise::map_archive archive(std::vector{path});
  std::uint64_t bytes_of_first_pass = 0;
  for (int pass = 0; pass < 2; ++pass) {
    while (const auto map = archive.next()) {
      for (std::size_t i = 0; i < map->weights.count; ++i) touch(map->weights.row(i));
      touch(std::as_bytes(map->keys));
    }
    require(archive.bytes_done() == archive.bytes_total(), "a pass hands out every byte");
    if (pass == 0) bytes_of_first_pass = archive.bytes_done();
    require(archive.bytes_done() == bytes_of_first_pass, "both passes are the same");
    archive.rewind();
  }
}

}  // namespace headwise_tests
