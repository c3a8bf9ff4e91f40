// SPDX-License-Identifier: Apache-2.0
//
// Files for tests: a folder that goes with its test, whole files in and out, and hostile ones made
// by hand. Nothing here calls the readers or writers under test.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "headwise/core/error.hpp"

namespace headwise_tests {

// A fresh folder, removed with all that is in it.
class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "headwise-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder " << name;
    path_ = name;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  // Writes a file into it; returns its path.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// `act` throws headwise::error of that code, with each of `parts` in its text.
template <class Act>
void expect_error(headwise::error_code code, std::initializer_list<std::string_view> parts,
                  Act&& act) {
  try {
    act();
    ADD_FAILURE() << "no error, but one was due: " << to_string(code) << " " << *parts.begin();
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    for (const std::string_view part : parts)
      EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos)
          << "'" << part << "' is not in: " << e.what();
  }
}

template <class T>
[[nodiscard]] std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
[[nodiscard]] std::string little_endian(T number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xffU);
  return bytes;
}

[[nodiscard]] inline std::string safetensors_bytes(const std::string& header,
                                                   const std::string& data) {
  return little_endian(std::uint64_t{header.size()}) + header + data;
}

// version: 1, 2 or 3. header_bytes: the dictionary is padded up to it; 0: it is not.
[[nodiscard]] inline std::string npy_bytes(int version, std::string dictionary,
                                           const std::string& data, std::size_t header_bytes = 0) {
  if (dictionary.size() + 1 < header_bytes)
    dictionary.append(header_bytes - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += version == 1 ? little_endian(static_cast<std::uint16_t>(dictionary.size()))
                       : little_endian(static_cast<std::uint32_t>(dictionary.size()));
  return file + dictionary + data;
}

}  // namespace headwise_tests
