// SPDX-License-Identifier: Apache-2.0
//
// The blueprint as a file: strict JSON, version 1, described by blueprint.schema.json beside this
// header. load_/read_ refuse whatever they do not know, naming its JSON pointer; save_/write_
// refuse what they could not read back, so read(write(x)) == x always. Neither depends on any
// locale.
//
//   {"format": "headwise-blueprint", "version": 1,
//    "model": {name, layers, query_heads, kv_heads, head_dim, vocab_size, fingerprint},
//    "tokens": {sink_count, classes: {name: [ids]}},
//    "profile": {recovery_target, budget, aggregation, criterion, granularity, prompts, queries,
//                length, tool, sources: [{name, sha256}]},
//    "policies": [{name, kind, and what the kind has: window; classes, ids; parts}],
//    "heads": [layers][kv_heads] of {policy, recovery, resident_fraction, forever_fraction,
//             candidates: [{name, recovery, resident_fraction}]}}
//
// A head's forever_fraction may be absent: it was not measured. So may the profile's budget: the
// plan was made for its target alone.
#pragma once

#include "headwise/io/blueprint_reader.hpp"
#include "headwise/io/blueprint_writer.hpp"
