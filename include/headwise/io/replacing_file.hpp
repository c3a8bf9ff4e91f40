// SPDX-License-Identifier: Apache-2.0
//
// replacing_file: a file that appears under its name only when it is whole. It is written beside
// its target, on a name that no other writer has, and renamed over it by commit(), once its bytes
// are on the disk: after a loss of power there is the old file or the new one, and of two writers
// the last to commit has its way. Destroyed before that, it leaves nothing behind and what was
// there stays; a process that is killed leaves "<path>.<process>.<n>.partial".
//
// O(bytes). One thread at a time; any number of writers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "headwise/io/mapped_file.hpp"

HEADWISE_NAMESPACE_BEGIN

class replacing_file {
 public:
  // size: the file begins as so many zero bytes, which a file system may keep as a hole.
  explicit replacing_file(const std::filesystem::path& path, std::uint64_t size = 0)
      : replacing_file(path.string(), make_partial(path.string())) {
    // The file is there now: a throw from here on runs the destructor, which removes it.
    const std::string room = "room for " + std::to_string(size) + " bytes";
    if (!std::in_range<off_t>(size)) fail(EFBIG, room);
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) fail(errno, room);
  }
  replacing_file(replacing_file&& other) noexcept
      : path_(std::move(other.path_)),
        partial_(std::exchange(other.partial_, {})),
        file_(std::move(other.file_)) {}
  replacing_file& operator=(replacing_file&&) = delete;
  ~replacing_file() {
    if (!partial_.empty()) ::unlink(partial_.c_str());
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Throws error(unreadable) with the system's reason, as commit() does.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written =
          ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(errno, "room to write at byte " + std::to_string(offset));
      offset += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void commit() {
    while (::fsync(file_.get()) != 0)
      if (errno != EINTR) fail(errno, "a disk that takes what was written");
    if (!file_.close()) fail(errno, "a file system that takes what was written");
    if (std::rename(partial_.c_str(), path_.c_str()) != 0)
      fail(errno, "a name that can be replaced");
    partial_.clear();
  }

 private:
  struct partial_file {
    std::string name;
    detail::file_descriptor file;
  };

  replacing_file(std::string path, partial_file made) noexcept
      : path_(std::move(path)), partial_(std::move(made.name)), file_(std::move(made.file)) {}

  [[nodiscard]] static partial_file make_partial(const std::string& path) {
    const std::string stem = path + "." + std::to_string(::getpid()) + ".";
    constexpr int everybody_by_umask = 0666;
    // Other writers of this process have the earlier names, or one that was killed left them.
    constexpr int most_names = 10'000;
    for (int n = 0;; ++n) {
      std::string name = stem + std::to_string(n) + ".partial";
      detail::file_descriptor file(
          ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, everybody_by_umask));
      if (file.get() >= 0) return {std::move(name), std::move(file)};
      if (errno != EEXIST || n == most_names)
        raise(error_code::unreadable, path, detail::errno_text(errno),
              "a folder in which files can be made");
    }
  }

  [[noreturn]] void fail(int number, std::string expected) const {
    raise(error_code::unreadable, path_, detail::errno_text(number), std::move(expected));
  }

  std::string path_;
  std::string partial_;  // empty: nothing to remove
  detail::file_descriptor file_;
};

HEADWISE_NAMESPACE_END
