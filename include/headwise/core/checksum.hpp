// SPDX-License-Identifier: Apache-2.0
//
// checksum: 64 bits over a run of bytes that comes in pieces of any size. Four lanes of
// (state ^ word) * odd, each step a bijection, so a change within one aligned word of eight bytes
// is always seen and others but for one in 2^64. It finds accidents, not forgers.
// O(bytes), at the speed of memory. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

class checksum {
 public:
  void add(const void* data, std::size_t size) noexcept {
    if (size == 0) return;  // data may be null
    const auto* bytes = static_cast<const std::byte*>(data);
    length_ += size;
    if (waiting_ > 0) {
      const std::size_t taken = std::min(size, block_.size() - waiting_);
      std::memcpy(block_.data() + waiting_, bytes, taken);
      waiting_ += taken;
      bytes += taken;
      size -= taken;
      if (waiting_ < block_.size()) return;
      mix(block_.data());
      waiting_ = 0;
    }
    for (; size >= block_.size(); bytes += block_.size(), size -= block_.size()) mix(bytes);
    std::memcpy(block_.data(), bytes, size);
    waiting_ = size;
  }
  [[nodiscard]] std::uint64_t value() const noexcept {
    checksum rest = *this;
    std::memset(rest.block_.data() + waiting_, 0, block_.size() - waiting_);
    rest.mix(rest.block_.data());
    std::uint64_t result = length_;
    for (const std::uint64_t lane : rest.lanes_) result = step(result, lane ^ (lane >> 32));
    return result ^ (result >> 29);
  }

 private:
  [[nodiscard]] static std::uint64_t step(std::uint64_t state, std::uint64_t word) noexcept {
    return std::rotl((state ^ word) * 0x9E3779B97F4A7C15U, 23);
  }
  void mix(const std::byte* block) noexcept {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, block + lane * sizeof word, sizeof word);
      lanes_[lane] = step(lanes_[lane], word);
    }
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
  std::array<std::byte, 32> block_{};
  std::size_t waiting_ = 0;  // bytes in block_
  std::uint64_t length_ = 0;
};

}  // namespace detail
HEADWISE_NAMESPACE_END
