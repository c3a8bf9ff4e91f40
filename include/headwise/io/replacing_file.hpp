// SPDX-License-Identifier: Apache-2.0
//
// replacing_file: a file that appears under its name only when it is whole. It has no name while it
// is written, and is renamed over its target by commit(), once its bytes are on the disk: after a
// loss of power there is the old file or the new one, and of two writers the last to commit has its
// way. Before that, whatever becomes of it or of the process, it leaves nothing behind and what was
// there stays. Within commit(), and all the time where a file system has no files without a name,
// it is "<target>.<process>.<n>.partial", which a process that is killed then leaves behind. A link
// stays: its target is replaced.
//
// O(bytes). One thread at a time; any number of writers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "headwise/io/mapped_file.hpp"

HEADWISE_NAMESPACE_BEGIN

class replacing_file {
 public:
  // size: the file begins as so many zero bytes, which a file system may keep as a hole. Throws
  // error(unreadable) where something else than a regular file has the name, or no file can be made
  // under it.
  explicit replacing_file(const std::filesystem::path& path, std::uint64_t size = 0)
      : replacing_file(path.string(), target_of(path)) {
    // The file is there now: a throw from here on runs the destructor, which removes it.
    const std::string room = "room for " + std::to_string(size) + " bytes";
    if (!std::in_range<off_t>(size)) fail(EFBIG, room);
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) fail(errno, room);
  }
  replacing_file(replacing_file&& other) noexcept
      : path_(std::move(other.path_)),
        target_(std::move(other.target_)),
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
    if (partial_.empty())
      partial_ = with_new_name([this](const char* name) {
        return ::linkat(AT_FDCWD, open_name(file_).c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
      });
    if (!file_.close()) fail(errno, "a file system that takes what was written");
    if (std::rename(partial_.c_str(), target_.c_str()) != 0)
      fail(errno, "a name that can be replaced");
    partial_.clear();
  }

 private:
  static constexpr int everybody_by_umask = 0666;
  static constexpr int most_names = 10'000;

  replacing_file(std::string path, std::filesystem::path target)
      : path_(std::move(path)), target_(target.string()), file_(open_nameless(target)) {
    if (file_.get() >= 0) {
      require_nameable();
      return;
    }
    partial_ = with_new_name([this](const char* name) {
      constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
      file_ = detail::file_descriptor(::open(name, flags, everybody_by_umask));
      return file_.get() >= 0;
    });
  }

  // Where the links lead to that the path may end with.
  [[nodiscard]] static std::filesystem::path target_of(std::filesystem::path path) {
    namespace fs = std::filesystem;
    const std::string place = path.string();
    struct stat status = {};
    const auto refuse = [&](std::string got) {
      raise(error_code::unreadable, place, std::move(got),
            "a file to write, or a name that is free");
    };
    if (::stat(path.c_str(), &status) == 0) {
      if (!S_ISREG(status.st_mode))
        refuse(S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
    } else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
      refuse(detail::errno_text(errno));  // a link that may not be followed is not
    }
    constexpr int most_links = 40;  // as Linux follows
    std::error_code problem;
    for (int n = 0; fs::is_symlink(path, problem); ++n) {
      const fs::path next = fs::read_symlink(path, problem);
      if (problem || n == most_links)
        raise(error_code::unreadable, place, "a link that cannot be followed", "one that can");
      path = path.parent_path() / next;
    }
    return path;
  }

  // Without a file where the system has none such, or could not give it a name later.
  [[nodiscard]] static detail::file_descriptor open_nameless(
      [[maybe_unused]] const std::filesystem::path& target) {
#ifdef O_TMPFILE
    const auto folder = target.has_parent_path() ? target.parent_path() : ".";
    constexpr int flags = O_WRONLY | O_TMPFILE | O_CLOEXEC;
    detail::file_descriptor file(::open(folder.c_str(), flags, everybody_by_umask));
    if (file.get() >= 0 && ::access(open_name(file).c_str(), F_OK) == 0) return file;
#endif
    return detail::file_descriptor();
  }

  [[nodiscard]] static std::string open_name(const detail::file_descriptor& file) {
    return "/proc/self/fd/" + std::to_string(file.get());
  }

  [[nodiscard]] std::string new_name(int n) const {
    return target_ + "." + std::to_string(::getpid()) + "." + std::to_string(n) + ".partial";
  }
  // That commit() will not find a name too long.
  void require_nameable() const {
    struct stat status = {};
    if (::lstat(new_name(most_names).c_str(), &status) != 0 && errno != ENOENT) fail_to_name();
  }
  // The name beside the target that take(name) has taken: it says whether it could, or sets errno.
  template <class Take>
  [[nodiscard]] std::string with_new_name(Take&& take) const {
    // Other writers of this process have the earlier names, or one that was killed left them.
    for (int n = 0;; ++n) {
      std::string name = new_name(n);
      if (take(name.c_str())) return name;
      if (errno != EEXIST || n == most_names) fail_to_name();
    }
  }

  [[noreturn]] void fail_to_name() const {
    fail(errno, "a folder in which files can be made");
  }

  [[noreturn]] void fail(int number, std::string expected) const {
    raise(error_code::unreadable, path_, detail::errno_text(number), std::move(expected));
  }

  std::string path_;     // as it was given
  std::string target_;   // behind all links
  std::string partial_;  // empty: nothing to remove
  detail::file_descriptor file_;
};

HEADWISE_NAMESPACE_END
