// SPDX-License-Identifier: Apache-2.0

#include "row_store.hpp"

#include "cached_rows.hpp"

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"

namespace headwise_llama_cpp {

std::unique_ptr<row_store> make_row_store(row_type type, const headwise::blueprint& plan,
                                          const headwise::cache_config& config,
                                          const row_store_sizes& sizes) {
  const auto make = [&]<class Key, class Value>() -> std::unique_ptr<row_store> {
    return std::make_unique<cached_rows<Key, Value>>(plan, config, sizes);
  };
  using namespace headwise;
  switch (type) {
    case row_type::f32:
      return make.template operator()<f32, f32>();
    case row_type::bf16:
      return make.template operator()<bf16, bf16>();
    case row_type::int8:
      return make.template operator()<int8_row, int8_row>();
    case row_type::int4:
      return make.template operator()<int4_group, int4_group>();
    case row_type::int8_int4:
      return make.template operator()<int8_row, int4_group>();
    case row_type::f16:
      break;
  }
  return make.template operator()<f16, f16>();
}

}  // namespace headwise_llama_cpp
