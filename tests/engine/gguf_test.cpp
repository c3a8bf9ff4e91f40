// SPDX-License-Identifier: Apache-2.0
//
// GGUF files from strangers: whatever is wrong with one is a headwise::error with the place, what
// was got and what was expected; nothing crashes, and nothing is allocated by a claimed number.

#include "llama/gguf.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "engine/gguf_builder.hpp"
#include "llama/model.hpp"

#include "support/allocation_watch.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using llama_example::gguf_file;
using llama_example::model;

class gguf : public testing::Test {
 protected:
  // Loading the whole model from these bytes; true where it loads, false for a headwise::error.
  bool loads(const std::string& bytes) {
    const auto path = folder_.write("model.gguf", bytes);
    const allocation_watch watch;
    bool loaded = true;
    try {
      const model weights(path);
    } catch (const headwise::error&) {
      loaded = false;
    }
    EXPECT_LT(watch.largest(), 16 * bytes.size() + 65536);
    return loaded;
  }

  void expect_refused(error_code code, std::initializer_list<std::string_view> parts,
                      const std::string& bytes) {
    const auto path = folder_.write("model.gguf", bytes);
    expect_error(code, parts, [&] { const model weights(path); });
    expect_error(code, {path.string()}, [&] { const model weights(path); });
  }

  temporary_folder folder_;
};

std::string replaced(std::string bytes, std::string_view from, std::string_view to) {
  const std::size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return bytes.replace(at, from.size(), to);
}

TEST_F(gguf, versions_2_and_3_are_read_and_others_refused) {
  const gguf_builder file = made_model{}.file();
  EXPECT_TRUE(loads(file.bytes(2)));
  EXPECT_TRUE(loads(file.bytes(3)));
  expect_refused(error_code::unsupported, {"byte 4", "version 1", "2 or 3"}, file.bytes(1));
  expect_refused(error_code::unsupported, {"version 50331648"}, file.bytes(3U << 24U));
  expect_refused(error_code::malformed, {"byte 0", "GGUF"}, "GGML" + file.bytes().substr(4));
}

TEST_F(gguf, a_missing_or_special_file_is_unreadable) {
  expect_error(error_code::unreadable, {"no_such_file.gguf"},
               [&] { gguf_file(folder_.path() / "no_such_file.gguf"); });
  expect_error(error_code::unreadable, {folder_.path().string()},
               [&] { gguf_file{folder_.path()}; });
  expect_refused(error_code::truncated, {"0 bytes left"}, "");
}

TEST_F(gguf, every_truncation_is_refused) {
  const std::string whole = made_model{}.file().bytes();
  ASSERT_TRUE(loads(whole));
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_FALSE(loads(whole.substr(0, whole.size() * i / 200)));
  const std::size_t header = whole.find("output_norm.weight") + 64;
  for (std::size_t size = 0; size < header; size += 41) EXPECT_FALSE(loads(whole.substr(0, size)));
  EXPECT_FALSE(loads(whole.substr(0, whole.size() - 1)));
}

// Every aligned or unaligned 8-byte field of the header, overwritten with hostile numbers.
TEST_F(gguf, hostile_numbers_anywhere_in_the_header_do_no_harm) {
  const std::string whole = made_model{.layers = 1}.file().bytes();
  const std::size_t header = whole.find("output_norm.weight") + 64;
  for (const std::uint64_t hostile :
       {std::uint64_t{1} << 63U, std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1} << 32U,
        std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 61U}) {
    for (std::size_t at = 4; at + 8 < header; at += at < 200 ? 1 : 29) {
      std::string bytes = whole;
      loads(bytes.replace(at, 8, little_endian(hostile)));
    }
  }
}

TEST_F(gguf, flipped_bytes_do_no_harm) {
  const std::string whole = made_model{.layers = 1}.file().bytes();
  const std::size_t header = whole.find("output_norm.weight") + 64;
  random_source random(3);
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = whole;
    for (std::uint32_t flips = random.between(1, 4); flips > 0; --flips) {
      bytes[random.below(static_cast<std::uint32_t>(header))] = static_cast<char>(random.bits());
    }
    loads(bytes);
  }
}

TEST_F(gguf, claimed_counts_are_checked_against_what_is_there) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 63U;
  const std::string whole = made_model{}.file().bytes();
  std::string bytes = whole;
  EXPECT_FALSE(loads(bytes.replace(8, 8, little_endian(huge))));
  bytes = whole;
  EXPECT_FALSE(loads(bytes.replace(16, 8, little_endian(huge))));
  const auto with = [](std::uint32_t type, const std::string& payload) {
    gguf_builder file;
    return file.entry("key", type, payload).bytes();
  };
  expect_refused(error_code::truncated, {"9223372036854775808 bytes of a string value"},
                 with(8, little_endian(huge)));
  expect_refused(error_code::truncated, {"array of 9223372036854775808"},
                 with(9, little_endian(std::uint32_t{4}) + little_endian(huge)));
  expect_refused(error_code::truncated, {"bytes"},
                 with(9, little_endian(std::uint32_t{8}) + little_endian(huge)));
  expect_refused(error_code::unsupported, {"array with element value type 9"},
                 with(9, little_endian(std::uint32_t{9}) + little_endian(huge)));
  expect_refused(error_code::malformed, {"value type 13", "0 to 12"}, with(13, "12345678"));
}

TEST_F(gguf, hostile_tensors_are_refused) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 63U;
  const auto with = [](const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                       std::uint64_t offset) {
    gguf_builder file;
    return file.tensor_at("t", dimensions, type, offset, std::string(128, 'x')).bytes();
  };
  EXPECT_NO_THROW(gguf_file(folder_.write("good.gguf", with({32}, 0, 0))));
  expect_refused(error_code::malformed, {"tensor 't'", "bytes"}, with({huge}, 0, 0));
  expect_refused(error_code::malformed, {"tensor 't'"}, with({huge, huge, huge, huge}, 0, 0));
  expect_refused(error_code::malformed, {"tensor 't'"}, with({std::uint64_t{1} << 62U, 4}, 0, 0));
  expect_refused(error_code::malformed, {"tensor 't'"}, with({0}, 0, 0));
  expect_refused(error_code::malformed, {"whole blocks of 32"}, with({33}, 8, 0));
  expect_refused(error_code::malformed, {"rank 5"}, with({1, 1, 1, 1, 1}, 0, 0));
  expect_refused(error_code::malformed, {"rank 0"}, with({}, 0, 0));
  expect_refused(error_code::unsupported, {"type 99", "Q4_1 (3)"}, with({32}, 99, 0));
  expect_refused(error_code::truncated, {"tensor 't'", "offset 32"}, with({32}, 0, 32));
  expect_refused(error_code::truncated, {"steps of 32"}, with({1}, 0, 4));
  expect_refused(error_code::truncated, {"offset 9223372036854775808"}, with({32}, 0, huge));
}

TEST_F(gguf, what_must_be_unique_is) {
  gguf_builder keys;
  expect_refused(error_code::duplicate, {"key 'k' a second time"},
                 keys.number("k", 1).number("k", 2).bytes());
  gguf_builder tensors;
  tensors.tensor("t", {8}, 0, std::string(32, 'x')).tensor("t", {8}, 0, std::string(32, 'x'));
  expect_refused(error_code::duplicate, {"tensor 't' a second time"}, tensors.bytes());
  gguf_builder overlapping;
  overlapping.tensor_at("a", {8}, 0, 0, std::string(32, 'x')).tensor_at("b", {8}, 0, 0, "");
  expect_refused(error_code::malformed, {"overlap"}, overlapping.bytes());
}

TEST_F(gguf, names_are_fit_to_print) {
  gguf_builder file;
  file.number("a\n\x1b[31m", 1).number("a\n\x1b[31m", 1);
  expect_refused(error_code::duplicate, {"'a??[31m'"}, file.bytes());
}

TEST_F(gguf, alignment_is_a_power_of_two) {
  gguf_builder file;
  file.number("general.alignment", 24).tensor("t", {8}, 0, std::string(32, 'x'));
  expect_refused(error_code::malformed, {"general.alignment", "24", "power of two"}, file.bytes());
  gguf_builder none;
  none.number("general.alignment", 0).tensor("t", {8}, 0, std::string(32, 'x'));
  expect_refused(error_code::malformed, {"general.alignment"}, none.bytes());
}

TEST_F(gguf, sizes_that_make_no_model_are_refused) {
  const auto made = [](auto change) {
    made_model sizes;
    change(sizes);
    return sizes.file().bytes();
  };
  expect_refused(error_code::malformed, {"head_count_kv", "3", "divisor"},
                 made([](made_model& m) { m.kv_heads = 3; }));
  expect_refused(error_code::malformed, {"block_count", "got 0"},
                 made([](made_model& m) { m.layers = 0; }));
  expect_refused(error_code::malformed, {"rope.dimension_count", "10", "up to the head's 8"},
                 made([](made_model& m) { m.rope_dimensions = 10; }));
  expect_refused(error_code::malformed, {"rope.dimension_count", "7"},
                 made([](made_model& m) { m.rope_dimensions = 7; }));
  expect_refused(error_code::malformed, {"general.architecture", "gptj", "llama or qwen2"},
                 made([](made_model& m) { m.architecture = "gptj"; }));
}

TEST_F(gguf, tensors_must_be_there_fit_and_all_be_used) {
  const std::string whole = made_model{}.file().bytes();
  expect_refused(error_code::missing, {"blk.0.attn_q.weight", "no such tensor"},
                 replaced(whole, "blk.0.attn_q.weight", "blk.0.attn_x.weight"));
  made_model sizes;
  gguf_builder other;
  sizes.hidden = 41;
  sizes.add_sizes(other);
  add_byte_tokenizer(other);
  made_model{}.add_tensors(other);
  expect_refused(error_code::shape_mismatch, {"blk.0.ffn_gate.weight", "40 rows", "41 rows"},
                 other.bytes());
  gguf_builder more = made_model{}.file();
  more.tensor("blk.0.attn_q_norm.weight", {8}, 0, std::string(32, '\0'));
  expect_refused(error_code::unsupported, {"blk.0.attn_q_norm.weight", "no use"}, more.bytes());
}

TEST_F(gguf, features_that_change_results_are_refused) {
  gguf_builder scaled = made_model{}.file();
  scaled.text("llama.rope.scaling.type", "yarn");
  expect_refused(error_code::malformed, {"rope.scaling.type", "yarn", "none or linear"},
                 scaled.bytes());
  gguf_builder experts = made_model{}.file();
  experts.number("llama.expert_count", 8);
  expect_refused(error_code::malformed, {"expert_count"}, experts.bytes());
  gguf_builder typed = made_model{}.file();
  typed.text("tokenizer.ggml.add_bos_token", "yes");
  expect_refused(error_code::malformed, {"add_bos_token", "true or false"}, typed.bytes());
}

}  // namespace
}  // namespace headwise_tests
