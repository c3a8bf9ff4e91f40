// SPDX-License-Identifier: Apache-2.0
//
// Version, check level, exceptions or not, and the inline namespace that carries all three: units
// that were compiled with different ones do not link to each other's symbols by accident.
#pragma once

#if __cplusplus < 202002L && (!defined(_MSVC_LANG) || _MSVC_LANG < 202002L)
#error "headwise needs C++20 or newer"
#endif

#define HEADWISE_VERSION_MAJOR 0
#define HEADWISE_VERSION_MINOR 1
#define HEADWISE_VERSION_PATCH 0
#define HEADWISE_VERSION_STRING "0.1.0"

#ifndef HEADWISE_CHECK_LEVEL
#define HEADWISE_CHECK_LEVEL 1
#endif

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define HEADWISE_HAS_EXCEPTIONS 1
#define HEADWISE_ABI_NAME(level) v0_1_checks##level
#else
#define HEADWISE_HAS_EXCEPTIONS 0
#define HEADWISE_ABI_NAME(level) v0_1_checks##level##_no_exceptions
#endif

#if HEADWISE_CHECK_LEVEL == 0
#define HEADWISE_ABI_NAMESPACE HEADWISE_ABI_NAME(0)
#elif HEADWISE_CHECK_LEVEL == 1
#define HEADWISE_ABI_NAMESPACE HEADWISE_ABI_NAME(1)
#elif HEADWISE_CHECK_LEVEL == 2
#define HEADWISE_ABI_NAMESPACE HEADWISE_ABI_NAME(2)
#else
#error "headwise: HEADWISE_CHECK_LEVEL must be 0, 1 or 2"
#endif
