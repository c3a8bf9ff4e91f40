// SPDX-License-Identifier: Apache-2.0
//
// headwise: adaptive, per-attention-head KV-cache policies. This is the door: all that decoding
// needs, on the standard library alone. Profiling and files (nlohmann/json) have headers of their
// own: headwise/profile/profiler.hpp, headwise/io/blueprint_json.hpp, headwise/io/map_archive.hpp.
// Where to start reading: headwise/policy/concepts.hpp.
#pragma once

#include "headwise/attend/attend.hpp"
#include "headwise/attend/attend_chunk.hpp"
#include "headwise/attend/partition.hpp"
#include "headwise/blueprint/blueprint.hpp"
#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"
#include "headwise/manager/cache_manager.hpp"
