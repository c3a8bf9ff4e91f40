// SPDX-License-Identifier: Apache-2.0
//
// What the state of a cache is written to and read from. A class lists its members once, in
// transfer(archive), for both directions.
//
//   file = "hw-state" | u32 version | u32 byte order | u64 bytes of the file | ... | u64 checksum
//
// Numbers are in the byte order of the machine that wrote them; another machine refuses the file.
// A reader takes no byte beyond the file, and memory only for what it has read.
// O(bytes). Not thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>

#include "headwise/core/checksum.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/flat_vector.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

struct archive_format {
  static constexpr char magic[8] = {'h', 'w', '-', 's', 't', 'a', 't', 'e'};
  static constexpr std::uint32_t version = 1;
  static constexpr std::uint32_t byte_order = 0x01020304;
  static constexpr std::size_t buffer_bytes = std::size_t{64} * 1024;
};

template <class T>
concept archived_number = std::integral<T> || std::floating_point<T> || std::is_enum_v<T>;

class saving_archive {
 public:
  static constexpr bool loading = false;

  // out == nullptr: counts the bytes only.
  saving_archive(std::ostream* out, std::uint64_t total) : out_(out) {
    std::uint32_t version = archive_format::version, order = archive_format::byte_order;
    bytes(archive_format::magic, sizeof archive_format::magic);
    number(version);
    number(order);
    number(total);
  }
  // Ends the file. Throws error(unreadable) naming `place` where the stream did not take it all.
  std::uint64_t finish(const std::string& place) {
    std::uint64_t sum = sum_.value();
    bytes(&sum, sizeof sum);
    if (out_ != nullptr && !out_->flush())
      raise(error_code::unreadable, place, "a stream that failed",
            "one that takes " + std::to_string(size_) + " bytes");
    return size_;
  }

  template <archived_number T>
  void number(const T& value) {
    bytes(&value, sizeof value);
  }
  void bytes(const void* data, std::size_t size) {
    size_ += size;
    if (out_ == nullptr) return;
    sum_.add(data, size);
    out_->write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  template <class T>
  void numbers(const flat_vector<T>& values) {
    number(static_cast<std::uint64_t>(values.size()));
    bytes(values.data(), values.size() * sizeof(T));
  }

 private:
  std::ostream* out_;
  std::uint64_t size_ = 0;
  checksum sum_;
};

class loading_archive {
 public:
  static constexpr bool loading = true;

  // Throws error naming `place` on a file of another kind, version or byte order.
  loading_archive(std::istream& in, std::string place)
      : in_(in),
        place_(std::move(place)),
        buffer_(std::make_unique<char[]>(archive_format::buffer_bytes)) {
    char magic[sizeof archive_format::magic];
    bytes(magic, sizeof magic);
    if (std::memcmp(magic, archive_format::magic, sizeof magic) != 0)
      fail(error_code::malformed, "other first bytes", "a saved state, which begins 'hw-state'");
    expect("version", archive_format::version, error_code::unsupported);
    expect("byte order", archive_format::byte_order, error_code::unsupported);
    std::uint64_t total = 0;
    number(total);
    if (total < done_ + sizeof(std::uint64_t))
      fail(error_code::malformed, std::to_string(total) + " bytes in all", "more than the header");
    total_ = total;
  }
  // Throws error on a file that goes on or whose bytes are not those that were written.
  void finish() {
    if (done_ + sizeof(std::uint64_t) != total_)
      fail(error_code::malformed, std::to_string(total_ - done_) + " bytes more",
           "the checksum and the end");
    const std::uint64_t expected = sum_.value();
    std::uint64_t got = 0;
    number(got);
    if (got != expected)
      fail(error_code::malformed, "checksum " + std::to_string(got),
           std::to_string(expected) + ", that of the bytes before it");
  }

  template <archived_number T>
  void number(T& value) {
    bytes(&value, sizeof value);
  }
  // Throws error(code) unless the next number is `expected`.
  template <archived_number T>
  void expect(const std::string& what, T expected, error_code code = error_code::shape_mismatch) {
    T got{};
    number(got);
    if (got != expected)
      fail(code, what + " " + std::to_string(got), what + " " + std::to_string(expected));
  }
  // Throws error(out_of_range) where the number is beyond `most`.
  template <std::unsigned_integral T>
  void number_up_to(const std::string& what, T& value, T most) {
    number(value);
    if (value > most)
      fail(error_code::out_of_range, what + " " + std::to_string(value),
           "at most " + std::to_string(most));
  }
  void bytes(void* to, std::size_t size) {
    auto* out = static_cast<char*>(to);
    while (size > 0) {
      if (next_ == end_) fill();
      const std::size_t count = std::min(size, end_ - next_);
      std::memcpy(out, buffer_.get() + next_, count);
      next_ += count;
      done_ += count;
      out += count;
      size -= count;
    }
  }
  template <class T>
  void numbers(flat_vector<T>& values) {
    constexpr std::size_t step = 1024;
    std::uint64_t count = 0;
    number(count);
    values.clear();
    while (values.size() < count) {
      const std::size_t before = values.size();
      const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(step, count - before));
      values.reserve_amortized(before + more);
      values.resize(before + more);
      bytes(values.data() + before, more * sizeof(T));
    }
  }
  [[noreturn]] void fail(error_code code, std::string got, std::string expected) const {
    raise(code, place_ + " at byte " + std::to_string(done_), std::move(got), std::move(expected));
  }

 private:
  // The header is read in small pieces, until the file's size is known.
  void fill() {
    const std::uint64_t left = total_ == 0 ? 1 : total_ - done_;
    const auto wanted = std::min<std::uint64_t>(left, archive_format::buffer_bytes);
    if (wanted == 0) fail(error_code::truncated, "the end", "more of what it holds");
    in_.read(buffer_.get(), static_cast<std::streamsize>(wanted));
    next_ = 0;
    end_ = static_cast<std::size_t>(in_.gcount());
    if (end_ == 0)
      fail(error_code::truncated, "the end of the stream",
           total_ == 0 ? std::string("a header") : std::to_string(total_) + " bytes in all");
    // All but the checksum itself, which ends the file.
    const std::uint64_t before_sum =
        left - std::min<std::uint64_t>(left, total_ == 0 ? 0 : sizeof(std::uint64_t));
    sum_.add(buffer_.get(), static_cast<std::size_t>(std::min<std::uint64_t>(end_, before_sum)));
  }

  std::istream& in_;
  std::string place_;
  std::unique_ptr<char[]> buffer_;
  std::size_t next_ = 0, end_ = 0;  // what of the buffer is not used yet
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;  // 0: not known yet
  checksum sum_;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
