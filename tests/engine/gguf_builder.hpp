// SPDX-License-Identifier: Apache-2.0
//
// GGUF files made by hand: any metadata, any tensors, and small Llama-style models with random
// weights. Shares no code with the reader.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/files.hpp"
#include "support/random.hpp"

namespace headwise_tests {

class gguf_builder {
 public:
  gguf_builder& number(const std::string& key, std::uint32_t value) {
    return entry(key, 4, little_endian(value));
  }
  gguf_builder& real(const std::string& key, float value) {
    return entry(key, 6, bytes_of(std::vector<float>{value}));
  }
  gguf_builder& flag(const std::string& key, bool value) {
    return entry(key, 7, std::string(1, value ? '\1' : '\0'));
  }
  gguf_builder& text(const std::string& key, std::string_view value) {
    return entry(key, 8, string(value));
  }
  gguf_builder& texts(const std::string& key, const std::vector<std::string>& values) {
    std::string payload;
    for (const std::string& value : values) payload += string(value);
    return array(key, 8, values.size(), payload);
  }
  gguf_builder& reals(const std::string& key, const std::vector<float>& values) {
    return array(key, 6, values.size(), bytes_of(values));
  }
  gguf_builder& integers(const std::string& key, const std::vector<std::int32_t>& values) {
    return array(key, 5, values.size(), bytes_of(values));
  }
  // The value is `payload` as it stands, whatever `type` would have.
  gguf_builder& entry(const std::string& key, std::uint32_t type, const std::string& payload) {
    ++entries_;
    metadata_ += string(key) + little_endian(type) + payload;
    return *this;
  }

  // dimensions: innermost first, as the format has them.
  gguf_builder& tensor(const std::string& name, const std::vector<std::uint64_t>& dimensions,
                       std::uint32_t type, const std::string& data) {
    data_.resize((data_.size() + 31) / 32 * 32);
    return tensor_at(name, dimensions, type, data_.size(), data);
  }
  gguf_builder& tensor_at(const std::string& name, const std::vector<std::uint64_t>& dimensions,
                          std::uint32_t type, std::uint64_t offset, const std::string& data) {
    ++tensors_;
    table_ += string(name) + little_endian(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) table_ += little_endian(dimension);
    table_ += little_endian(type) + little_endian(offset);
    data_ += data;
    return *this;
  }

  [[nodiscard]] std::string bytes(std::uint32_t version = 3) const {
    std::string file = "GGUF" + little_endian(version) + little_endian(tensors_) +
                       little_endian(entries_) + metadata_ + table_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

  [[nodiscard]] static std::string string(std::string_view text) {
    return little_endian(std::uint64_t{text.size()}) + std::string(text);
  }

 private:
  gguf_builder& array(const std::string& key, std::uint32_t type, std::size_t count,
                      const std::string& payload) {
    return entry(key, 9, little_endian(type) + little_endian(std::uint64_t{count}) + payload);
  }

  std::uint64_t entries_ = 0;
  std::uint64_t tensors_ = 0;
  std::string metadata_, table_, data_;
};

// The 256 bytes in the alphabet of byte-level BPE, then `more`.
[[nodiscard]] inline std::vector<std::string> byte_vocabulary(
    const std::vector<std::string>& more = {}) {
  std::vector<std::string> tokens;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const unsigned code = printable ? byte : next++;
    tokens.push_back(code < 128 ? std::string(1, static_cast<char>(code))
                                : std::string{static_cast<char>(0xC0U | code >> 6U),
                                              static_cast<char>(0x80U | (code & 0x3FU))});
  }
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

inline void add_byte_tokenizer(gguf_builder& file, std::string_view rule = "gpt-2") {
  const std::vector<std::string> tokens = byte_vocabulary({"th", "the", "<|end|>"});
  std::vector<std::int32_t> kinds(tokens.size(), 1);
  kinds.back() = 3;
  file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", rule)
      .texts("tokenizer.ggml.tokens", tokens)
      .integers("tokenizer.ggml.token_type", kinds)
      .texts("tokenizer.ggml.merges", {"t h", "th e"})
      .number("tokenizer.ggml.eos_token_id", 258);
}

struct made_model {
  std::string architecture = "llama";
  std::uint32_t layers = 2;
  std::uint32_t query_heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 8;
  std::uint32_t rope_dimensions = 8;
  std::uint32_t embedding = 24;
  std::uint32_t hidden = 40;
  bool tied = true;
  bool rope_factors = false;
  std::uint32_t seed = 1;

  static constexpr std::uint32_t vocabulary = 259;

  void add_sizes(gguf_builder& file) const {
    const auto key = [&](const char* name) { return architecture + name; };
    file.text("general.architecture", architecture)
        .text("general.name", "made")
        .number(key(".block_count"), layers)
        .number(key(".context_length"), 512)
        .number(key(".embedding_length"), embedding)
        .number(key(".feed_forward_length"), hidden)
        .number(key(".attention.head_count"), query_heads)
        .number(key(".attention.head_count_kv"), kv_heads)
        .number(key(".attention.key_length"), head_dim)
        .number(key(".attention.value_length"), head_dim)
        .number(key(".rope.dimension_count"), rope_dimensions)
        .real(key(".rope.freq_base"), 1000.0F)
        .real(key(".attention.layer_norm_rms_epsilon"), 1e-5F);
  }

  void add_tensors(gguf_builder& file) const {
    random_source random(seed);
    // Uniform weights whose products keep the size of what goes in.
    const auto weights = [&](const std::string& name, std::uint64_t inputs, std::uint64_t outputs) {
      std::vector<float> values = random.numbers(static_cast<std::size_t>(inputs * outputs));
      for (float& value : values) value *= std::sqrt(3.0F / static_cast<float>(inputs));
      file.tensor(name, {inputs, outputs}, 0, bytes_of(values));
    };
    const auto around_one = [&](const std::string& name, std::uint64_t size) {
      std::vector<float> values = random.numbers(static_cast<std::size_t>(size));
      for (float& value : values) value = 1.0F + 0.5F * value;
      file.tensor(name, {size}, 0, bytes_of(values));
    };
    const std::uint64_t query = std::uint64_t{query_heads} * head_dim;
    const std::uint64_t key = std::uint64_t{kv_heads} * head_dim;
    weights("token_embd.weight", embedding, vocabulary);
    if (rope_factors) around_one("rope_freqs.weight", rope_dimensions / 2);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      around_one(prefix + "attn_norm.weight", embedding);
      weights(prefix + "attn_q.weight", embedding, query);
      weights(prefix + "attn_k.weight", embedding, key);
      weights(prefix + "attn_v.weight", embedding, key);
      if (architecture == "qwen2") {
        around_one(prefix + "attn_q.bias", query);
        around_one(prefix + "attn_k.bias", key);
        around_one(prefix + "attn_v.bias", key);
      }
      weights(prefix + "attn_output.weight", query, embedding);
      around_one(prefix + "ffn_norm.weight", embedding);
      weights(prefix + "ffn_gate.weight", embedding, hidden);
      weights(prefix + "ffn_up.weight", embedding, hidden);
      weights(prefix + "ffn_down.weight", hidden, embedding);
    }
    around_one("output_norm.weight", embedding);
    if (!tied) weights("output.weight", embedding, vocabulary);
  }

  [[nodiscard]] gguf_builder file() const {
    gguf_builder result;
    add_sizes(result);
    add_byte_tokenizer(result);
    add_tensors(result);
    return result;
  }
};

}  // namespace headwise_tests
