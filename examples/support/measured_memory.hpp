// SPDX-License-Identifier: Apache-2.0
//
// A memory resource that knows what it has given out. Not for several threads at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>

class measured_memory final : public std::pmr::memory_resource {
 public:
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  // The most that it ever held.
  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const block = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    held_ -= bytes;
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::uint64_t held_ = 0;
  std::uint64_t peak_ = 0;
};
