// SPDX-License-Identifier: Apache-2.0
//
// mapped_file: a regular file, read-only, as bytes in memory (POSIX mmap). Opening costs O(1);
// pages are read when touched. One mapping may be read by any number of threads. As with every
// mapping, a file that another process cuts short while it is mapped stops this process (SIGBUS).
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headwise/core/error.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

// The text of an errno value; takes it by value since the next call may change errno.
[[nodiscard]] inline std::string errno_text(int number) {
  return std::generic_category().message(number);
}

// Closes what it holds.
class file_descriptor {
 public:
  explicit file_descriptor(int number = -1) noexcept : number_(number) {}
  file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~file_descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const noexcept { return number_; }
  // What close() says: some file systems report a failed write only here.
  [[nodiscard]] bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace detail

// Tells a file from another one of its name and from itself after a write.
struct file_version {
  ::dev_t device = 0;
  ::ino_t inode = 0;
  ::off_t size = 0;
  std::int64_t seconds = 0;  // of the last write
  std::int64_t nanoseconds = 0;
  friend bool operator==(const file_version&, const file_version&) = default;
};

class mapped_file {
 public:
  // Throws error(unreadable) with the system's reason, or where path is no regular file.
  explicit mapped_file(const std::filesystem::path& path) : path_(path.string()) {
    // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
    const detail::file_descriptor file(
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // NOLINT: open is variadic
    if (file.get() < 0) fail(detail::errno_text(errno), "a file that can be opened");
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) fail(detail::errno_text(errno), "a file");
    if (!S_ISREG(status.st_mode)) fail("something else", "a regular file");
    if (!std::in_range<std::size_t>(status.st_size))
      fail(std::to_string(status.st_size) + " bytes", "a file that fits the address space");
    size_ = static_cast<std::size_t>(status.st_size);
    version_ = {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                status.st_mtim.tv_nsec};
    if (size_ == 0) return;  // mmap refuses an empty range
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED)
      fail(detail::errno_text(errno), "room to map " + std::to_string(size_) + " bytes");
    data_ = static_cast<const std::byte*>(data);
  }

  mapped_file(mapped_file&& other) noexcept
      : path_(std::move(other.path_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        version_(other.version_) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(version_, other.version_);
    return *this;
  }
  ~mapped_file() {
    if (data_ != nullptr) ::munmap(address(data_), size_);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // As of the opening.
  [[nodiscard]] const file_version& version() const noexcept { return version_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  // Lets the system take back the pages of `part`, which lies in bytes(), and those shortly before
  // it; a later read brings them back. It keeps the resident size of a pass over a file small.
  void forget(std::span<const std::byte> part) const noexcept {
    if (part.empty()) return;
    // A system maps some pages around the one that was touched: also behind a reader's back.
    constexpr std::size_t around = std::size_t{1} << 20;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto at = static_cast<std::size_t>(part.data() - data_);
    const std::size_t begin = (at - std::min(at, around)) / page * page;
    ::madvise(address(data_ + begin), at + part.size() - begin, MADV_DONTNEED);
  }

 private:
  [[noreturn]] void fail(std::string got, std::string expected) const {
    raise(error_code::unreadable, path_, std::move(got), std::move(expected));
  }
  // The system calls take void* but write nothing.
  [[nodiscard]] static void* address(const std::byte* data) noexcept {
    return const_cast<std::byte*>(data);
  }

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  file_version version_;
};

HEADWISE_NAMESPACE_END
