// SPDX-License-Identifier: Apache-2.0
//
// The input as a .npy file: by itself, as a map and as the tokens of a folder of recorded maps.
#include "fuzz/target.hpp"
#include "fuzz/touch_maps.hpp"

#include "support/made_maps.hpp"

namespace headwise_tests {
namespace {

// A folder of maps of which one file, `input`, is a link to another file.
class map_folder {
 public:
  map_folder(const std::string& input, const std::filesystem::path& target) {
    folder_.write("metadata.json", map_metadata(1));
    const std::string map =
        npy_bytes(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }",
                  elements("F32", small_map));
    folder_.write("0.0.0.npy", map);
    folder_.write("0.0.1.npy", map);
    folder_.write("0.tokens.npy",
                  npy_bytes(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }",
                            bytes_of(std::vector<std::int64_t>{5, 6, 7, 8})));
    std::filesystem::remove(path() / input);
    std::filesystem::create_symlink(target, path() / input);
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return folder_.path(); }

 private:
  temporary_folder folder_;
};

}  // namespace
}  // namespace headwise_tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headwise_tests;
  static const input_file file;
  static const map_folder with_map("0.0.0.npy", file.path());
  static const map_folder with_tokens("0.tokens.npy", file.path());
  file.hold(data, size);
  const bool read = accepts([&] {
    const headwise::npy_reader reader(file.path());
    touch(reader.bytes());
  });
  if (!read) return 0;
  accepts([&] { touch_maps(with_map.path()); });
  accepts([&] { touch_maps(with_tokens.path()); });
  return 0;
}
