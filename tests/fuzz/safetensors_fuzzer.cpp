// SPDX-License-Identifier: Apache-2.0
//
// The input as a safetensors file: all tensors, written and read back the same; and as recorded
// maps.
#include <algorithm>

#include "fuzz/target.hpp"
#include "fuzz/touch_maps.hpp"

#include "headwise/io/safetensors_writer.hpp"
#include "support/files.hpp"

namespace headwise_tests {
namespace {

void write(const headwise::safetensors_reader& from, const std::filesystem::path& path) {
  std::vector<headwise::tensor_declaration> declared;
  for (const auto& tensor : from.tensors())
    declared.push_back({tensor.name, tensor.type, tensor.shape});
  headwise::safetensors_writer writer(path, from.metadata(), declared);
  for (const auto& tensor : from.tensors()) writer.write(tensor.name, 0, tensor.bytes);
  writer.finish();
}

bool same(const headwise::safetensors_reader& a, const headwise::safetensors_reader& b) {
  return a.metadata() == b.metadata() &&
         std::ranges::equal(a.tensors(), b.tensors(), [](const auto& x, const auto& y) {
           return x.name == y.name && x.type == y.type && x.shape == y.shape &&
                  std::ranges::equal(x.bytes, y.bytes);
         });
}

}  // namespace
}  // namespace headwise_tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headwise_tests;
  static const input_file file;
  static const temporary_folder folder;
  file.hold(data, size);
  const bool read = accepts([&] {
    const headwise::safetensors_reader reader(file.path());
    const auto copy = folder.path() / "copy.safetensors";
    write(reader, copy);
    require(same(reader, headwise::safetensors_reader(copy)), "read(write(x)) == x");
  });
  if (read) accepts([&] { touch_maps(file.path()); });
  return 0;
}
