// SPDX-License-Identifier: Apache-2.0
//
// counted_memory: a memory resource that knows what it gave out and has not got back.
#pragma once

#include <memory_resource>

namespace headwise_bench {

class counted_memory : public std::pmr::memory_resource {
 public:
  [[nodiscard]] std::size_t held_bytes() const { return held_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const memory = source_->allocate(bytes, alignment);
    held_ += bytes;
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    held_ -= bytes;
    source_->deallocate(memory, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource* source_ = std::pmr::new_delete_resource();
  std::size_t held_ = 0;
};

}  // namespace headwise_bench
