// SPDX-License-Identifier: Apache-2.0
//
// Text to ids and back. Whole real vocabularies are compared with llama.cpp by
// compare_llama_cpp.py; here are the rules one by one.

#include "llama/tokenizer.hpp"

#include <gtest/gtest.h>

#include "engine/gguf_builder.hpp"
#include "llama/pre_tokenizer.hpp"
#include "vocabulary/unicode.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using headwise::token_classes;
using llama_example::tokenizer;
using ids = std::vector<std::int32_t>;
using words = std::vector<std::string_view>;

tokenizer load(const gguf_builder& file) {
  const temporary_folder folder;
  return tokenizer(llama_example::gguf_file(folder.write("vocabulary.gguf", file.bytes())));
}

words split(std::string_view text, std::string_view rule) {
  return llama_example::split_words(text, *llama_example::word_rule_of(rule));
}

TEST(pre_tokenizer, gpt_2_splits_at_its_regular_expression) {
  EXPECT_EQ(split("Hello world", "gpt-2"), (words{"Hello", " world"}));
  EXPECT_EQ(split("it's we'LL don't", "gpt-2"),
            (words{"it", "'s", " we", "'", "LL", " don", "'t"}));
  EXPECT_EQ(split("a  b\n\nc \n", "gpt-2"), (words{"a", " ", " b", "\n", "\n", "c", " \n"}));
  EXPECT_EQ(split("in 1969, ok...", "gpt-2"), (words{"in", " 1969", ",", " ok", "..."}));
  EXPECT_EQ(split("\xC3\xA9t\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC", "gpt-2"),
            (words{"\xC3\xA9t\xC3\xA9", " \xE6\x97\xA5\xE6\x9C\xAC"}));
  EXPECT_EQ(split("", "gpt-2"), words{});
}

TEST(pre_tokenizer, smollm_takes_every_number_by_itself) {
  EXPECT_EQ(split("in 1969,", "smollm"), (words{"in", " ", "1", "9", "6", "9", ","}));
  EXPECT_EQ(split("x12 y", "smollm"), (words{"x", "1", "2", " y"}));
  EXPECT_EQ(split("\xC2\xBD", "smollm"), (words{"\xC2\xBD"}));  // one half is a number
}

TEST(pre_tokenizer, llama_3_joins_one_mark_to_a_word_and_groups_digits) {
  EXPECT_EQ(split("(hello) It'S", "llama-bpe"), (words{"(hello", ")", " It", "'S"}));
  EXPECT_EQ(split("12345 67", "llama-bpe"), (words{"123", "45", " ", "67"}));
  EXPECT_EQ(split("12345", "qwen2"), (words{"1", "2", "3", "4", "5"}));
  EXPECT_EQ(split("a \n\n b!!\n\nc", "llama-bpe"), (words{"a", " \n\n", " b", "!!\n\n", "c"}));
  EXPECT_EQ(split("a   b", "llama-bpe"), (words{"a", "  ", " b"}));
}

TEST(pre_tokenizer, words_put_together_are_the_text_whatever_its_bytes) {
  random_source random(11);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (std::uint32_t n = random.below(40); n > 0; --n) {
      text += random.one_in(2) ? static_cast<char>(random.bits()) : " a1.\n'"[random.below(6)];
    }
    for (const char* rule : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
      std::string joined;
      for (const std::string_view word : split(text, rule)) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(unicode, bytes_that_are_no_utf_8_stand_alone) {
  const auto lengths = [](std::string_view text) {
    std::vector<std::size_t> result;
    for (const auto& point : headwise_vocabulary::decode_utf8(text)) result.push_back(point.begin);
    return result;
  };
  using offsets = std::vector<std::size_t>;
  EXPECT_EQ(lengths("\xE6\x97\xA5x"), (offsets{0, 3}));
  EXPECT_EQ(lengths("\xE6\x97"), (offsets{0, 1}));                // cut short
  EXPECT_EQ(lengths("\xC0\x80"), (offsets{0, 1}));                // overlong
  EXPECT_EQ(lengths("\xED\xA0\x80"), (offsets{0, 1, 2}));         // a surrogate
  EXPECT_EQ(lengths("\xF4\x90\x80\x80"), (offsets{0, 1, 2, 3}));  // past U+10FFFF
  EXPECT_EQ(lengths("\xF0\x9F\x99\x82"), (offsets{0}));
}

gguf_builder byte_pair_file() {
  gguf_builder file;
  add_byte_tokenizer(file);
  return file;
}

TEST(byte_pair, merges_in_the_file_s_order) {
  const tokenizer tokens = load(byte_pair_file());
  EXPECT_EQ(tokens.encode("the"), (ids{257}));
  EXPECT_EQ(tokens.encode("that"), (ids{256, 'a', 't'}));
  EXPECT_EQ(tokens.encode(" the"), (ids{' ', 257}));
  EXPECT_EQ(tokens.encode(""), ids{});
}

TEST(byte_pair, every_byte_comes_back) {
  const tokenizer tokens = load(byte_pair_file());
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const ids encoded = tokens.encode(all);
  EXPECT_EQ(encoded.size(), 256U);
  EXPECT_EQ(tokens.decode(encoded), all);
}

TEST(byte_pair, special_tokens_in_a_text_are_parsed_on_request_only) {
  const tokenizer tokens = load(byte_pair_file());
  EXPECT_EQ(tokens.encode("a<|end|>the", {.special_tokens = true}), (ids{'a', 258, 257}));
  EXPECT_EQ(tokens.encode("<|end|>").size(), 7U);
  EXPECT_EQ(tokens.decode(ids{'a', 258, 'b'}), "ab");
  EXPECT_EQ(tokens.piece(258), "<|end|>");
  EXPECT_TRUE(tokens.is_end(258));
  EXPECT_FALSE(tokens.is_end('a'));
}

TEST(byte_pair, ids_outside_are_refused) {
  const tokenizer tokens = load(byte_pair_file());
  expect_error(error_code::out_of_range, {"-1", "258"},
               [&] { static_cast<void>(tokens.piece(-1)); });
  expect_error(error_code::out_of_range, {"259"},
               [&] { static_cast<void>(tokens.decode(ids{259})); });
}

TEST(byte_pair, a_long_word_takes_no_quadratic_time) {
  const tokenizer tokens = load(byte_pair_file());
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "the";
  EXPECT_EQ(tokens.encode(text).size(), 300000U);
}

// "▁a" over "ab" over the rest, by score; bytes of U+00E9 are there, those of U+20AC are not.
gguf_builder sentence_piece_file() {
  gguf_builder file;
  file.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens",
             {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\xE2\x96\x81", "a", "b",
              "\xE2\x96\x81"
              "a",
              "ab",
              "\xE2\x96\x81"
              "ab",
              "<mark>"})
      .reals("tokenizer.ggml.scores", {0, 0, 0, 0, 0, -5, -6, -7, -2, -1, -3, 0})
      .integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 4})
      .number("tokenizer.ggml.bos_token_id", 1)
      .number("tokenizer.ggml.eos_token_id", 2)
      .number("tokenizer.ggml.unknown_token_id", 0);
  return file;
}

TEST(sentence_piece, the_best_score_merges_first) {
  const tokenizer tokens = load(sentence_piece_file());
  EXPECT_EQ(tokens.encode("ab"), (ids{1, 10}));     // "ab" first, then with the blank
  EXPECT_EQ(tokens.encode("aab"), (ids{1, 8, 9}));  // no "▁aab"
  EXPECT_EQ(tokens.encode("b a", {.bos = false}), (ids{5, 7, 8}));
  EXPECT_EQ(tokens.decode(ids{1, 10, 8}), "ab a");
}

TEST(sentence_piece, what_is_no_token_becomes_its_bytes_or_unknown) {
  const tokenizer tokens = load(sentence_piece_file());
  EXPECT_EQ(tokens.encode("a\xC3\xA9", {.bos = false}), (ids{8, 3, 4}));
  EXPECT_EQ(tokens.decode(ids{8, 3, 4}), "a\xC3\xA9");
  EXPECT_EQ(tokens.encode("\xE2\x82\xAC", {.bos = false}), (ids{5, 0, 0, 0}));
}

TEST(sentence_piece, a_special_token_is_followed_by_a_blank) {
  const tokenizer tokens = load(sentence_piece_file());
  EXPECT_EQ(tokens.encode("a</s>a", {.special_tokens = true}), (ids{1, 8, 2, 8}));
  EXPECT_EQ(tokens.encode("a<mark>a"), (ids{1, 8, 11, 8}));  // user-defined: always
}

TEST(tokenizer, broken_vocabularies_are_refused) {
  const auto refused = [](std::initializer_list<std::string_view> parts, const gguf_builder& file,
                          error_code code = error_code::malformed) {
    expect_error(code, parts, [&] { load(file); });
  };
  refused({"tokenizer.ggml.model", "no such key"},
          gguf_builder().texts("tokenizer.ggml.tokens", {"a"}), error_code::missing);
  refused({"tokenizer.ggml.tokens", "no such key"}, gguf_builder(), error_code::missing);
  refused({"tokenizer.ggml.tokens", "0 tokens"}, gguf_builder().texts("tokenizer.ggml.tokens", {}));
  const auto piece_file = [](const std::vector<float>& scores,
                             const std::vector<std::int32_t>& kinds, std::uint32_t bos) {
    return gguf_builder()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", {"a", "b"})
        .reals("tokenizer.ggml.scores", scores)
        .integers("tokenizer.ggml.token_type", kinds)
        .number("tokenizer.ggml.bos_token_id", bos);
  };
  load(piece_file({0, 0}, {1, 1}, 1));
  refused({"scores", "1 scores", "2 tokens"}, piece_file({0}, {1, 1}, 1));
  refused({"scores", "NaN at index 1"}, piece_file({0, NAN}, {1, 1}, 1));
  refused({"token_type", "3 types"}, piece_file({0, 0}, {1, 1, 1}, 1));
  refused({"token_type", "9 at index 1"}, piece_file({0, 0}, {1, 9}, 1));
  refused({"bos_token_id", "2", "below 2"}, piece_file({0, 0}, {1, 1}, 2));
  gguf_builder rule;
  add_byte_tokenizer(rule, "bloom");
  refused({"tokenizer.ggml.pre", "bloom", "smollm"}, rule);
  const auto merges = [](const std::string& line) {
    return gguf_builder()
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", byte_vocabulary({"th"}))
        .texts("tokenizer.ggml.merges", {line});
  };
  load(merges("t h"));
  for (const char* line : {"", "t", "th", "t ", " h", "t x", "x h", "t h h"}) {
    refused({"merges"}, merges(line));
  }
}

TEST(tokenizer, the_hash_tells_vocabularies_apart) {
  gguf_builder other;
  add_byte_tokenizer(other);
  EXPECT_EQ(load(byte_pair_file()).hash(), load(other).hash());
  EXPECT_EQ(load(byte_pair_file()).hash().size(), 16U);
  EXPECT_NE(load(byte_pair_file()).hash(), load(sentence_piece_file()).hash());
}

TEST(token_classes, marks_count_with_blanks_and_line_ends_around_them) {  // J06
  const auto classes = [](std::string_view piece) {
    return headwise_vocabulary::classes_of(piece, headwise_vocabulary::token_kind::normal);
  };
  const auto newline = headwise_vocabulary::newline_class;
  EXPECT_EQ(classes("."), token_classes::punctuation);
  EXPECT_EQ(classes(" ."), token_classes::punctuation);
  EXPECT_EQ(classes(".\n"), token_classes::punctuation | newline);
  EXPECT_EQ(classes(" ?! "), token_classes::punctuation);
  EXPECT_EQ(classes("\xE3\x80\x82"), token_classes::punctuation);  // ideographic full stop
  EXPECT_EQ(classes("\n\n"), newline);
  EXPECT_EQ(classes(" 42"), headwise_vocabulary::digits_class);
  for (const char* plain :
       {"", " ", "a", "a.", ".a", "4th", "\xE2\x82\xAC"}) {  // a currency sign is none
    EXPECT_EQ(classes(plain), token_classes::none) << plain;
  }
  EXPECT_EQ(headwise_vocabulary::classes_of(".", headwise_vocabulary::token_kind::control),
            token_classes::special);
}

TEST(token_classes, rules_name_the_ids_of_each_class) {
  const tokenizer tokens = load(byte_pair_file());
  const auto rules = llama_example::vocabulary_rules(tokens, 4);
  EXPECT_EQ(rules.sink_count, 4U);
  ASSERT_EQ(rules.classes.size(), 4U);
  EXPECT_EQ(rules.classes[0].name, "special");
  EXPECT_EQ(rules.classes[0].ids, ids{258});
  EXPECT_EQ(rules.classes[1].ids.size(), 32U);  // the marks of ASCII
  EXPECT_EQ(rules.classes[2].ids, ids{'\n'});
  EXPECT_EQ(rules.classes[3].ids, (ids{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}));
  const auto classifier = headwise::make_classifier(rules, 259);
  EXPECT_EQ(classifier.classify('.', 10).classes, token_classes::punctuation);
  EXPECT_EQ(classifier.classify('.', 3).classes, token_classes::punctuation | token_classes::sink);
}

}  // namespace
}  // namespace headwise_tests
