// SPDX-License-Identifier: Apache-2.0
//
// Threads that read the same files: the error is that of the first bad map, for any number of them.

#include "measure.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "support/files.hpp"
#include "support/made_maps.hpp"

namespace headwise_tests {
namespace {

// Maps [2, 4, 4] of two layers, with a NaN in that of a layer and query head.
std::string maps_with_nan(const std::string& prompt, int layer, std::size_t head) {
  const std::size_t element = head * small_map.size();
  std::vector<made_tensor> tensors{map_tensor(prompt, 0), map_tensor(prompt, 1),
                                   tokens_tensor(prompt, {5, 6, 7, 8})};
  tensors[static_cast<std::size_t>(layer)].bytes.replace(4 * element, 4, "\xff\xff\xff\xff");
  return safetensors_of(map_metadata(2), tensors);
}

// Where the second file was written to, a thread whose share ends before the bad map of the first
// comes to the second file first.
TEST(measure, throws_the_error_of_the_first_bad_map) {
  const temporary_folder folder;
  folder.write("a.safetensors", maps_with_nan("0", 1, 1));
  const auto second = folder.write("b.safetensors", maps_with_nan("0", 0, 0));
  const headwise::map_archive archive(std::vector{folder.path()});
  std::filesystem::last_write_time(
      second, std::filesystem::last_write_time(second) + std::chrono::seconds(1));
  for (const std::uint32_t threads : {1U, 2U, 64U})
    expect_error(headwise::error_code::not_normalized, {"prompt 0 layer 1 query head 1 row 0"},
                 [&] { (void)headwise_tool::measure(archive, {}, threads); });
}

TEST(measure, throws_the_error_of_a_file_that_changed_before_those_behind_it) {
  const temporary_folder folder;
  const auto first = folder.write("a.safetensors", small_maps(2));
  folder.write("b.safetensors", maps_with_nan("0", 0, 0));
  const headwise::map_archive archive(std::vector{folder.path()});
  std::filesystem::last_write_time(
      first, std::filesystem::last_write_time(first) + std::chrono::seconds(1));
  for (const std::uint32_t threads : {1U, 2U, 64U})
    expect_error(headwise::error_code::unreadable, {"a.safetensors"},
                 [&] { (void)headwise_tool::measure(archive, {}, threads); });
}

}  // namespace
}  // namespace headwise_tests
