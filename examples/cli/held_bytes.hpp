// SPDX-License-Identifier: Apache-2.0
//
// What a cache holds while a text goes through it, measured at its memory resource.
#pragma once

#include <cstdint>
#include <memory_resource>

#include "cache_type.hpp"

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/manager/cache_config.hpp"

namespace headwise_tool {

// Tokens that go through an evaluated cache together; its bytes are read after each step.
inline constexpr std::size_t step_tokens = 32;

// Counts what is out, and the most that ever was.
class measured_memory final : public std::pmr::memory_resource {
 public:
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override;
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::uint64_t held_ = 0;
  std::uint64_t peak_ = 0;
};

// Small pages, none reserved: what is held is what is used.
[[nodiscard]] headwise::cache_config evaluated_cache(measured_memory& memory) noexcept;

// The window of every head, behind the `sinks` first tokens.
[[nodiscard]] headwise::blueprint uniform_window_plan(const headwise::model_shape& shape,
                                                      headwise::token_count sinks,
                                                      headwise::token_count window);

// The smallest such window whose cache holds at least `wanted` bytes, on average over the steps of
// a text of `length` tokens; at most `length`. Found by feeding caches of empty rows.
[[nodiscard]] headwise::token_count window_that_holds(double wanted,
                                                      const headwise::model_shape& shape,
                                                      headwise::token_count sinks,
                                                      headwise::token_count length,
                                                      cache_type type);

}  // namespace headwise_tool
