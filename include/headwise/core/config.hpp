// SPDX-License-Identifier: Apache-2.0
//
// The only macros of headwise (with version.hpp, and one that attend/row_kernels.hpp defines for
// its own text and takes back). A consumer may define, the same in every unit:
//   HEADWISE_CHECK_LEVEL  0: no checks. 1 (default): O(1) checks of the caller's contract.
//                         2: also checks that walk a head's rows.
//   HEADWISE_EXTERN_KERNELS  the program compiles the loops of attention in one unit, not in each
//                         (attend/kernel_instances.hpp).
//   HEADWISE_ON_ERROR(e)  builds without exceptions only: what happens with a headwise::error `e`
//                         instead of a throw; must not return. Default: print e.what(), abort.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "headwise/version.hpp"

// Opens the namespace; every header does. Under a pack pragma of the consumer the standard
// library's types, and with them ours, would have another layout than in the next unit.
#define HEADWISE_NAMESPACE_BEGIN                                                      \
  static_assert(                                                                      \
      [] {                                                                            \
        struct probe {                                                                \
          char small;                                                                 \
          void* aligned;                                                              \
        };                                                                            \
        return sizeof(probe) == 2 * sizeof(void*);                                    \
      }(),                                                                            \
      "headwise: a #pragma pack is in force where a header of headwise is included"); \
  namespace headwise {                                                                \
  inline namespace HEADWISE_ABI_NAMESPACE {
#define HEADWISE_NAMESPACE_END \
  }                            \
  }

HEADWISE_NAMESPACE_BEGIN
namespace detail {

// A broken contract is the caller's bug: there is no state to return to, so say where and stop.
[[noreturn]] inline void contract_broken(const char* file, int line, const char* condition,
                                         const char* message) noexcept {
  std::fprintf(stderr, "%s:%d: headwise: %s (%s is false)\n", file, line, message, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace detail
HEADWISE_NAMESPACE_END

#if HEADWISE_CHECK_LEVEL >= 1
#define HEADWISE_EXPECTS(condition, message) \
  (static_cast<bool>(condition)              \
       ? static_cast<void>(0)                \
       : ::headwise::detail::contract_broken(__FILE__, __LINE__, #condition, message))
#else
#define HEADWISE_EXPECTS(condition, message) static_cast<void>(0)
#endif

#if HEADWISE_CHECK_LEVEL >= 2
#define HEADWISE_AUDIT(condition, message) HEADWISE_EXPECTS(condition, message)
#else
#define HEADWISE_AUDIT(condition, message) static_cast<void>(0)
#endif
