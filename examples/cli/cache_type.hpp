// SPDX-License-Identifier: Apache-2.0
//
// What the rows of a cache may be stored as, by the words of the command line: a codec, or one for
// keys and one for values.
#pragma once

#include <cstdint>
#include <string>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"

namespace headwise_tool {

enum class cache_type { f32, f16, bf16, int8, int8_int4 };
inline constexpr cache_type cache_types[] = {cache_type::f32, cache_type::f16, cache_type::bf16,
                                             cache_type::int8, cache_type::int8_int4};

template <headwise::row_codec Key, headwise::row_codec Value = Key>
struct row_codecs {
  using key = Key;
  using value = Value;
};
// fn(row_codecs<Key, Value>{}) with those of `type`.
template <class Fn>
auto with_codecs(cache_type type, Fn&& fn) {
  switch (type) {
    case cache_type::f32:
      return fn(row_codecs<headwise::f32>{});
    case cache_type::bf16:
      return fn(row_codecs<headwise::bf16>{});
    case cache_type::int8:
      return fn(row_codecs<headwise::int8_row>{});
    case cache_type::int8_int4:
      return fn(row_codecs<headwise::int8_row, headwise::int4_group>{});
    case cache_type::f16:
      break;
  }
  return fn(row_codecs<headwise::f16>{});
}

[[nodiscard]] inline std::string to_string(cache_type type) {
  return with_codecs(type, []<class Key, class Value>(row_codecs<Key, Value>) {
    std::string name(Key::name);
    if (Key::name != Value::name) name.append("+").append(Value::name);
    return name;
  });
}

// A key and a value.
[[nodiscard]] inline std::uint64_t row_bytes(cache_type type, std::uint32_t head_dim) {
  return with_codecs(type, [&]<class Key, class Value>(row_codecs<Key, Value>) -> std::uint64_t {
    return Key::row_bytes(head_dim) + Value::row_bytes(head_dim);
  });
}

}  // namespace headwise_tool
