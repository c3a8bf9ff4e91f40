// SPDX-License-Identifier: Apache-2.0
//
// A memory resource that counts, that refuses on request, and that overwrites what it gets back so
// that a late reader shows.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>

namespace headwise_tests {

class counting_resource final : public std::pmr::memory_resource {
 public:
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_bytes_; }
  [[nodiscard]] std::size_t requested_bytes() const noexcept { return requested_bytes_; }  // ever
  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }  // of allocate
  [[nodiscard]] std::size_t refusals() const noexcept { return refusals_; }

  // `more` calls of allocate succeed from now on, the others throw until allow_all().
  void refuse_after(std::size_t more) noexcept { left_ = more; }
  void allow_all() noexcept { left_ = unlimited; }

 private:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (left_ == 0) {
      ++refusals_;
      throw std::bad_alloc();
    }
    if (left_ != unlimited) --left_;
    void* const block = upstream_->allocate(bytes, alignment);
    ++calls_;
    bytes_ += bytes;
    requested_bytes_ += bytes;
    if (bytes_ > peak_bytes_) peak_bytes_ = bytes_;
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    bytes_ -= bytes;
    std::memset(block, 0xff, bytes);  // NaN as a float
    upstream_->deallocate(block, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource* upstream_ = std::pmr::new_delete_resource();
  std::size_t bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  std::size_t requested_bytes_ = 0;
  std::size_t calls_ = 0;
  std::size_t refusals_ = 0;
  std::size_t left_ = unlimited;
};

}  // namespace headwise_tests
