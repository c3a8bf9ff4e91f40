// SPDX-License-Identifier: Apache-2.0
//
// Version, check level, and the inline namespace that carries both: units that were compiled with
// different ones do not link to each other's symbols by accident.
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

#if HEADWISE_CHECK_LEVEL == 0
#define HEADWISE_ABI_NAMESPACE v0_1_checks0
#elif HEADWISE_CHECK_LEVEL == 1
#define HEADWISE_ABI_NAMESPACE v0_1_checks1
#elif HEADWISE_CHECK_LEVEL == 2
#define HEADWISE_ABI_NAMESPACE v0_1_checks2
#else
#error "headwise: HEADWISE_CHECK_LEVEL must be 0, 1 or 2"
#endif
