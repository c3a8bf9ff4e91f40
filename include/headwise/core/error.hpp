// SPDX-License-Identifier: Apache-2.0
//
// headwise::error: bad data from outside (files, JSON, constructor arguments). It carries what
// kind, where, what was got and what was expected, and what() says all of it in one line.
// A caller's bug is HEADWISE_EXPECTS (config.hpp); an ordinary refusal is the result of a try_
// call.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN

enum class error_code {
  invalid_argument,  // a number that no construction can honour
  out_of_range,      // an index, id or integer beyond its bounds
  shape_mismatch,    // made for another model, or sizes that contradict each other
  unreadable,        // the file cannot be opened, mapped, read or written
  truncated,         // bytes are missing
  malformed,         // not the grammar of its format
  unsupported,       // legal, but not what this version reads (dtype, version, architecture)
  duplicate,         // a name that must be unique is there twice
  not_normalized,    // attention rows that do not sum to one, or are not finite
  not_causal,        // attention mass on a later key
  missing,           // something required is absent
  out_of_memory,     // the memory resource refused
};

[[nodiscard]] constexpr std::string_view to_string(error_code code) noexcept {
  switch (code) {
    case error_code::invalid_argument:
      return "invalid argument";
    case error_code::out_of_range:
      return "out of range";
    case error_code::shape_mismatch:
      return "shape mismatch";
    case error_code::unreadable:
      return "unreadable";
    case error_code::truncated:
      return "truncated";
    case error_code::malformed:
      return "malformed";
    case error_code::unsupported:
      return "unsupported";
    case error_code::duplicate:
      return "duplicate";
    case error_code::not_normalized:
      return "not normalized";
    case error_code::not_causal:
      return "not causal";
    case error_code::missing:
      return "missing";
    case error_code::out_of_memory:
      return "out of memory";
  }
  return "unknown";
}

class error : public std::runtime_error {
 public:
  // place: a file, JSON pointer, tensor name, byte offset or argument name, outermost first.
  error(error_code code, std::string place, std::string got, std::string expected)
      : std::runtime_error(place + ": " + std::string(to_string(code)) + ": got " + got +
                           ", expected " + expected),
        code_(code),
        place_(std::move(place)),
        got_(std::move(got)),
        expected_(std::move(expected)) {}

  [[nodiscard]] error_code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& got() const noexcept { return got_; }
  [[nodiscard]] const std::string& expected() const noexcept { return expected_; }

 private:
  error_code code_;
  std::string place_, got_, expected_;
};

[[noreturn]] inline void raise(const error& e) {
#if HEADWISE_HAS_EXCEPTIONS
  throw e;
#elif defined(HEADWISE_ON_ERROR)
  HEADWISE_ON_ERROR(e);
  std::abort();
#else
  std::fprintf(stderr, "headwise: %s\n", e.what());
  std::abort();
#endif
}

[[noreturn]] inline void raise(error_code code, std::string place, std::string got,
                               std::string expected) {
  raise(error(code, std::move(place), std::move(got), std::move(expected)));
}

namespace detail {

// Runs fn; false where the memory resource refused and fn had no effect. Without exceptions a
// resource cannot refuse, only stop the program.
template <class Fn>
[[nodiscard]] bool memory_suffices(Fn&& fn) noexcept {
#if HEADWISE_HAS_EXCEPTIONS
  try {
    fn();
    return true;
  } catch (...) {
    return false;
  }
#else
  fn();
  return true;
#endif
}

}  // namespace detail

HEADWISE_NAMESPACE_END
