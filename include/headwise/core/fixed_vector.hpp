// SPDX-License-Identifier: Apache-2.0
//
// fixed_vector: elements of any type in room that is reserved once, before the first, and never
// moves. Like flat_vector it is there because std::pmr::vector is slow to compile. O(1) a call.
// One thread at a time.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>
#include <utility>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

template <class T>
class fixed_vector {
 public:
  // Room for `capacity` elements. Throws what the memory resource throws.
  fixed_vector(std::size_t capacity, std::pmr::memory_resource* memory) : memory_(memory) {
    if (capacity == 0) return;
    data_ = static_cast<T*>(memory_->allocate(capacity * sizeof(T), alignof(T)));
    capacity_ = capacity;
  }
  fixed_vector(const fixed_vector&) = delete;
  fixed_vector& operator=(const fixed_vector&) = delete;
  ~fixed_vector() {
    while (size_ > 0) data_[--size_].~T();
    if (data_ != nullptr) memory_->deallocate(data_, capacity_ * sizeof(T), alignof(T));
  }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    HEADWISE_EXPECTS(size_ < capacity_, "a fixed_vector is filled beyond its room");
    T* const element = ::new (static_cast<void*>(data_ + size_)) T(std::forward<Args>(args)...);
    ++size_;
    return *element;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return capacity_ * sizeof(T); }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  std::pmr::memory_resource* memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
