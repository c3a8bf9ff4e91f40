// SPDX-License-Identifier: Apache-2.0
//
// What recorded maps say about themselves: the same texts in the __metadata__ of a safetensors file
// and in the metadata.json beside a set of .npy files.
//
//   format          "headwise-maps"
//   version         "1"
//   layers, query_heads, kv_heads, head_dim   of the model, in digits
//   model           its name                                    (may be absent: not known)
//   vocab_size      in digits                                   (may be absent: not known)
//   tokenizer       hash of its vocabulary                      (may be absent: not known)
//   sink_count      the first positions that count as sinks     (may be absent: 0)
//   token_classes   {"special": [ids], ...} as JSON text        (may be absent: none)
//
// Further texts are left alone. Reading and writing: O(text). Pure: any number of threads.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "headwise/io/safetensors_reader.hpp"
#include "headwise/io/token_rules_json.hpp"

HEADWISE_NAMESPACE_BEGIN

struct map_info {
  model_shape shape;
  model_fingerprint model;
  token_rules tokens;
  friend bool operator==(const map_info&, const map_info&) = default;
};

inline constexpr std::string_view map_format = "headwise-maps";
inline constexpr std::uint32_t map_version = 1;

namespace detail {

// nullopt: not a number in digits alone, or beyond 32 bits.
[[nodiscard]] inline std::optional<std::uint32_t> number_in(std::string_view digits) noexcept {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

class map_info_reader {
 public:
  map_info_reader(const text_map& metadata, std::string place)
      : metadata_(metadata), place_(std::move(place) + ": metadata ") {}

  [[nodiscard]] map_info read() const {
    if (const std::string format = text("format", true); format != map_format)
      raise(error_code::malformed, place_ + "format", in_quotes(format), in_quotes(map_format));
    const std::string known = std::to_string(map_version);
    if (const std::string version = text("version", true); version != known)
      raise(error_code::unsupported, place_ + "version", in_quotes(version), in_quotes(known));
    map_info info;
    info.shape = {number("layers", true), number("query_heads", true), number("kv_heads", true),
                  number("head_dim", true)};
    validate(info.shape, place_ + "shape");
    info.model = {text("model", false), number("vocab_size", false), text("tokenizer", false)};
    if (info.model.vocab_size > max_vocab_size)
      raise(error_code::out_of_range, place_ + "vocab_size", std::to_string(info.model.vocab_size),
            "at most " + std::to_string(max_vocab_size));
    info.tokens.sink_count = number("sink_count", false);
    if (const std::string classes = text("token_classes", false); !classes.empty()) {
      const json_value json = parse_json(classes, place_ + "token_classes");
      info.tokens.classes =
          read_classes(json_cursor(json, place_ + "token_classes"), info.model.vocab_size);
    }
    // Classes are looked up by id, in a table as large as the vocabulary.
    if (!info.tokens.classes.empty() && info.model.vocab_size == 0)
      raise(error_code::missing, place_ + "vocab_size", "nothing",
            "the size of the vocabulary, as there are token_classes");
    return info;
  }

 private:
  [[nodiscard]] std::string text(std::string_view name, bool required) const {
    const auto found = metadata_.find(name);
    if (found != metadata_.end()) return found->second;
    if (required) raise(error_code::missing, place_ + std::string(name), "nothing", "a text");
    return {};
  }
  [[nodiscard]] std::uint32_t number(std::string_view name, bool required) const {
    const std::string digits = text(name, required);
    if (digits.empty() && !required) return 0;
    const auto value = number_in(digits);
    if (!value)
      raise(error_code::malformed, place_ + std::string(name), in_quotes(digits),
            "a 32-bit number in digits");
    return *value;
  }

  const text_map& metadata_;
  std::string place_;
};

}  // namespace detail

// place: of the metadata, for messages. Throws error naming the entry.
[[nodiscard]] inline map_info read_map_info(const text_map& metadata, const std::string& place) {
  return detail::map_info_reader(metadata, place).read();
}

// Throws error(invalid_argument) on classes that a reader would refuse.
[[nodiscard]] inline text_map make_metadata(const map_info& info) {
  validate(info.shape);
  detail::check_classes(info.tokens.classes, info.model.vocab_size, "token_classes");
  std::string classes;
  detail::append_classes(classes, info.tokens.classes, "", "", "token_classes");
  return {{"format", std::string(map_format)},
          {"version", std::to_string(map_version)},
          {"model", info.model.name},
          {"tokenizer", info.model.tokenizer},
          {"vocab_size", std::to_string(info.model.vocab_size)},
          {"layers", std::to_string(info.shape.layers)},
          {"query_heads", std::to_string(info.shape.query_heads)},
          {"kv_heads", std::to_string(info.shape.kv_heads)},
          {"head_dim", std::to_string(info.shape.head_dim)},
          {"sink_count", std::to_string(info.tokens.sink_count)},
          {"token_classes", std::move(classes)}};
}

HEADWISE_NAMESPACE_END
