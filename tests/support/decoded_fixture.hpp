// SPDX-License-Identifier: Apache-2.0
//
// The rows of a fixture as codecs give them back: what an oracle in double attends, so that it
// shares the error of the codec with the cache, and nothing else.
#pragma once

#include <utility>
#include <vector>

#include "support/fixture.hpp"

namespace headwise_tests {

template <class Codec>
void decode_encoded(std::span<float> row) {
  std::vector<std::byte> bytes(Codec::row_bytes(row.size()));
  Codec::encode(row, bytes.data());
  Codec::decode(bytes.data(), row);
}

template <class Codec>
[[nodiscard]] fixture::row_filler decoded_rows(fixture::row_filler given) {
  return [given = std::move(given)](headwise::head_id head, headwise::position pos,
                                    std::span<float> row) {
    given(head, pos, row);
    decode_encoded<Codec>(row);
  };
}

template <class Key, class Value>
[[nodiscard]] fixture decoded_fixture(fixture given) {
  given.key = decoded_rows<Key>(std::move(given.key));
  given.value = decoded_rows<Value>(std::move(given.value));
  return given;
}

}  // namespace headwise_tests
