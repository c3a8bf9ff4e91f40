// SPDX-License-Identifier: Apache-2.0
#include "support/allocation_watch.hpp"

#include <cstdlib>
#include <new>

namespace {

[[nodiscard]] bool is_refused() noexcept {
  std::size_t left = headwise_tests::requests_to_meet;
  while (left != headwise_tests::no_refusal && left != 0 &&
         !headwise_tests::requests_to_meet.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0;
}

[[nodiscard]] void* watched(std::size_t bytes, std::size_t alignment) {
  if (is_refused()) throw std::bad_alloc();
  ++headwise_tests::request_count;
  std::size_t seen = headwise_tests::largest_request;
  while (seen < bytes && !headwise_tests::largest_request.compare_exchange_weak(seen, bytes)) {
  }
  // aligned_alloc wants a size that is a multiple of the alignment; no rounded size may wrap.
  const std::size_t padding = (alignment - bytes % alignment) % alignment;
  if (bytes + padding < bytes) throw std::bad_alloc();
  void* const block = alignment <= alignof(std::max_align_t)
                          ? std::malloc(bytes == 0 ? 1 : bytes)
                          : std::aligned_alloc(alignment, bytes + padding);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// The other forms of new call one of the first two, but for a sanitizer's own; the other forms of
// delete one of the four.
void* operator new(std::size_t bytes) {
  return watched(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return watched(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return watched(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
