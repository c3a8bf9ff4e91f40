// SPDX-License-Identifier: Apache-2.0
#include "headwise/io/sha256.hpp"

#include <string>

#include <gtest/gtest.h>

namespace {

std::string hash_of(const std::string& text, std::size_t step) {
  headwise::sha256 hash;
  for (std::size_t at = 0; at < text.size(); at += step)
    hash.add(std::as_bytes(std::span(text)).subspan(at, std::min(step, text.size() - at)));
  return hash.hex();
}

// The examples of FIPS 180-4 and of NIST's example values.
TEST(sha256, published_vectors) {
  const std::vector<std::pair<std::string, std::string>> vectors{
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, expected] : vectors)
    for (const std::size_t step : {1U, 63U, 64U, 65U, 1'000'000U})
      EXPECT_EQ(hash_of(text, step), expected);
}

// Every length around the ends of a block, in one piece and byte by byte.
TEST(sha256, pieces_do_not_matter) {
  for (std::size_t length = 0; length < 200; ++length)
    EXPECT_EQ(hash_of(std::string(length, 'x'), 1), hash_of(std::string(length, 'x'), 1000));
}

}  // namespace
