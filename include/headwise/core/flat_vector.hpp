// SPDX-License-Identifier: Apache-2.0
//
// flat_vector: a vector of trivially copyable elements whose room is reserved before it is filled:
// only reserve() and a copy ask the memory resource, so all else is safe on the decode path. It
// compiles several times faster than std::pmr::vector, of which the tables of a cache would need a
// dozen kinds. O(1) a call but for reserve, copies and erase_front. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

template <class T>
class flat_vector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  explicit flat_vector(std::pmr::memory_resource* memory) noexcept : memory_(memory) {}
  // `count` elements of zeros. Throws what the memory resource throws.
  flat_vector(std::size_t count, std::pmr::memory_resource* memory) : memory_(memory) {
    reserve(count);
    resize(count);
  }
  flat_vector(flat_vector&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  // Keeps its own memory resource. Throws what that throws.
  flat_vector& operator=(const flat_vector& other) {
    if (this == &other) return *this;
    size_ = 0;
    reserve(other.size_);
    append(other.data_, other.size_);
    return *this;
  }
  ~flat_vector() { release(); }
  void swap(flat_vector& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return capacity_ * sizeof(T); }
  [[nodiscard]] std::pmr::memory_resource* memory() const noexcept { return memory_; }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] T& back() noexcept { return data_[size_ - 1]; }
  [[nodiscard]] const T& back() const noexcept { return data_[size_ - 1]; }

  // Room for `count` elements in all. Throws what the memory resource throws.
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    // A size that wraps must not become a small one; no resource has as much as there is.
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
    const std::size_t bytes = count > most / sizeof(T) ? most : count * sizeof(T);
    T* const larger = static_cast<T*>(memory_->allocate(bytes, alignof(T)));
    if (size_ > 0) std::memcpy(static_cast<void*>(larger), data_, size_ * sizeof(T));
    const std::size_t size = size_;
    release();
    data_ = larger;
    size_ = size;
    capacity_ = count;
  }
  // The same, by doubling: for tables that grow step by step.
  void reserve_amortized(std::size_t count) {
    if (count > capacity_) reserve(std::max(count, 2 * capacity_));
  }

  // ---- within the room that is reserved
  void push_back(const T& value) noexcept {
    HEADWISE_EXPECTS(size_ < capacity_, "a flat_vector is filled beyond its room");
    ::new (static_cast<void*>(data_ + size_)) T(value);
    ++size_;
  }
  void append(const T* values, std::size_t count) noexcept {
    HEADWISE_EXPECTS(count <= capacity_ - size_, "a flat_vector is filled beyond its room");
    if (count > 0) std::memcpy(static_cast<void*>(data_ + size_), values, count * sizeof(T));
    size_ += count;
  }
  void resize(std::size_t count, const T& value = T{}) noexcept {
    while (size_ < count) push_back(value);
    size_ = count;
  }
  void pop_back() noexcept { --size_; }
  void clear() noexcept { size_ = 0; }
  void erase_front(std::size_t count) noexcept {
    if (count == 0) return;
    size_ -= count;
    std::memmove(static_cast<void*>(data_), data_ + count, size_ * sizeof(T));
  }

 private:
  void release() noexcept {
    if (data_ != nullptr) memory_->deallocate(data_, capacity_ * sizeof(T), alignof(T));
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  std::pmr::memory_resource* memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
