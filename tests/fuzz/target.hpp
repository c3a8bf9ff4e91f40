// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share. A target is one function over bytes; libFuzzer calls it with made
// inputs, replay.cpp with those in files. It returns, or it aborts.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "headwise/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace headwise_tests {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

// Whether `act` ends without a headwise::error; any other exception ends the program.
template <class Act>
bool accepts(Act&& act) {
  try {
    act();
    return true;
  } catch (const headwise::error& e) {
    require(!e.place().empty(), "an error names its place");
    return false;
  }
}

// Reads every byte, so that a sanitizer sees a span that leaves its memory.
inline void touch(std::span<const std::byte> bytes) {
  std::uint8_t sum = 0;
  for (const std::byte b : bytes) sum = static_cast<std::uint8_t>(sum + std::to_integer<int>(b));
  // Used where no optimiser can see that it is not.
  [[maybe_unused]] static volatile std::uint8_t sink;
  sink = sum;
}
inline void touch(std::string_view text) {
  touch(std::as_bytes(std::span(text)));
}

// A file in memory (Linux), for readers that take a path; another input takes its place.
class input_file {
 public:
  input_file() : number_(::memfd_create("input", MFD_CLOEXEC)) {
    if (number_ < 0) throw std::runtime_error("no file in memory");
  }
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file() { ::close(number_); }

  [[nodiscard]] std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(number_);
  }
  void hold(const std::uint8_t* data, std::size_t size) const {
    const bool held = ::ftruncate(number_, 0) == 0 &&
                      ::pwrite(number_, data, size, 0) == static_cast<ssize_t>(size);
    require(held, "the input goes into its file");
  }

 private:
  int number_;
};

}  // namespace headwise_tests
