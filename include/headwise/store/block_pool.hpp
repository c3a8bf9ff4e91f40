// SPDX-License-Identifier: Apache-2.0
//
// Equal blocks of memory: a number reserved at construction, the rest from a memory resource one at
// a time and back to it at once when free, so that what is held is what is used.
// O(1) a call. One owner thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory_resource>

#include "headwise/core/error.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

// Passes every call on to a memory resource and counts the bytes that are out.
class counting_resource final : public std::pmr::memory_resource {
 public:
  explicit counting_resource(std::pmr::memory_resource* upstream) noexcept : upstream_(upstream) {}
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_bytes_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const block = upstream_->allocate(bytes, alignment);
    held_bytes_ += bytes;
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(block, bytes, alignment);
    held_bytes_ -= bytes;
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource* upstream_;
  std::size_t held_bytes_ = 0;
};

class block_pool {
 public:
  // Throws what the memory resource throws, and then holds nothing.
  block_pool(std::size_t block_bytes, std::size_t alignment, std::size_t reserved,
             std::pmr::memory_resource* memory)
      : block_bytes_(
            round_up(block_bytes < sizeof(void*) ? sizeof(void*) : block_bytes, alignment)),
        alignment_(alignment),
        reserved_(reserved),
        memory_(memory) {
    if (reserved_ == 0) return;
    region_ = static_cast<std::byte*>(memory_->allocate(reserved_ * block_bytes_, alignment_));
    for (std::size_t i = reserved_; i > 0; --i) push(region_ + (i - 1) * block_bytes_);
  }
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;
  ~block_pool() {
    if (region_ != nullptr) memory_->deallocate(region_, reserved_ * block_bytes_, alignment_);
  }

  // A reserved block, else one from memory; nullptr where the memory resource refuses.
  [[nodiscard]] void* try_take() noexcept {
    if (free_ != nullptr) return pop();
    void* block = nullptr;
    const bool taken = memory_suffices([&] { block = take_from_memory(); });
    return taken ? block : nullptr;
  }
  // Leaves the reserved blocks to others. Throws what the memory resource throws.
  [[nodiscard]] void* take_from_memory() { return memory_->allocate(block_bytes_, alignment_); }

  void give_back(void* block) noexcept {
    if (is_reserved(block))
      push(block);
    else
      memory_->deallocate(block, block_bytes_, alignment_);
  }

  [[nodiscard]] std::size_t block_bytes() const noexcept { return block_bytes_; }
  [[nodiscard]] std::size_t idle_blocks() const noexcept { return idle_; }

 private:
  [[nodiscard]] bool is_reserved(const void* block) const noexcept {
    const auto* const address = static_cast<const std::byte*>(block);
    const std::less<const std::byte*> before;
    return region_ != nullptr && !before(address, region_) &&
           before(address, region_ + reserved_ * block_bytes_);
  }
  void push(void* block) noexcept {
    free_ = ::new (block) idle_block{free_};
    ++idle_;
  }
  [[nodiscard]] void* pop() noexcept {
    idle_block* const block = free_;
    free_ = block->next;
    --idle_;
    return block;
  }

  struct idle_block {
    idle_block* next;
  };

  std::size_t block_bytes_;
  std::size_t alignment_;
  std::size_t reserved_;
  std::pmr::memory_resource* memory_;
  std::byte* region_ = nullptr;
  idle_block* free_ = nullptr;
  std::size_t idle_ = 0;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
