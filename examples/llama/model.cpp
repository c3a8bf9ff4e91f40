// SPDX-License-Identifier: Apache-2.0

#include "model.hpp"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "gguf.hpp"

#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace llama_example {
namespace {

using headwise::error_code;

constexpr std::uint64_t most_of_anything = 1U << 24U;  // no size of a model is larger

// Reads the keys of one architecture: "llama.block_count" and its kin.
class architecture {
 public:
  explicit architecture(const gguf_file& file)
      : file_(file), name_(file.text("general.architecture")) {
    if (name_ != "llama" && name_ != "qwen2") {
      file.refuse("general.architecture", headwise::in_quotes(name_), "llama or qwen2");
    }
  }

  [[nodiscard]] rope_layout layout() const noexcept {
    return name_ == "llama" ? rope_layout::neighbours : rope_layout::halves;
  }

  [[nodiscard]] std::size_t size(const char* key,
                                 std::optional<std::uint64_t> otherwise = {}) const {
    const auto value = file_.count(name_ + key, most_of_anything, otherwise);
    if (value == 0) refuse(key, "0", "at least 1");
    return static_cast<std::size_t>(value);
  }

  [[nodiscard]] double number(const char* key, std::optional<double> otherwise = {}) const {
    const double value = file_.number(name_ + key, otherwise);
    if (value <= 0) refuse(key, std::to_string(value), "a positive number");
    return value;
  }

  // Features that would change every result and that this engine does not have.
  void refuse_unknown_features() const {
    const std::string scaling(file_.text(name_ + ".rope.scaling.type", "none"));
    if (scaling != "none" && scaling != "linear") {
      refuse(".rope.scaling.type", headwise::in_quotes(scaling), "none or linear");
    }
    if (file_.count(name_ + ".expert_count", most_of_anything, 0) != 0) {
      refuse(".expert_count", "a mixture of experts", "a dense model");
    }
  }

  [[noreturn]] void refuse(const char* key, std::string got, std::string expected) const {
    file_.refuse(name_ + key, std::move(got), std::move(expected));
  }

 private:
  const gguf_file& file_;
  std::string name_;
};

model_sizes read_sizes(const architecture& keys, std::size_t vocabulary) {
  keys.refuse_unknown_features();
  const std::size_t embedding = keys.size(".embedding_length");
  const std::size_t query_heads = keys.size(".attention.head_count");
  const std::size_t kv_heads = keys.size(".attention.head_count_kv", query_heads);
  if (query_heads % kv_heads != 0) {
    keys.refuse(".attention.head_count_kv", std::to_string(kv_heads),
                "a divisor of the " + std::to_string(query_heads) + " query heads");
  }
  if (embedding < query_heads) {
    keys.refuse(".embedding_length", std::to_string(embedding), "at least one element a head");
  }
  const std::size_t head_dim = keys.size(".attention.key_length", embedding / query_heads);
  if (const std::size_t value_dim = keys.size(".attention.value_length", head_dim);
      value_dim != head_dim) {
    keys.refuse(".attention.value_length", std::to_string(value_dim),
                "the key length, " + std::to_string(head_dim));
  }
  const auto narrow = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
  return {
      {narrow(keys.size(".block_count")), narrow(query_heads), narrow(kv_heads), narrow(head_dim)},
      embedding,
      keys.size(".feed_forward_length"),
      vocabulary,
      keys.size(".context_length"),
      static_cast<float>(keys.number(".attention.layer_norm_rms_epsilon"))};
}

rope_parameters read_rotation(const architecture& keys, std::size_t head_dim) {
  const std::size_t dimensions = keys.size(".rope.dimension_count", head_dim);
  if (dimensions > head_dim || dimensions % 2 != 0) {
    keys.refuse(".rope.dimension_count", std::to_string(dimensions),
                "an even number up to the head's " + std::to_string(head_dim));
  }
  return {keys.layout(),
          dimensions,
          keys.number(".rope.freq_base", 10000.0),
          keys.number(".rope.scaling.factor", keys.number(".rope.scale_linear", 1.0)),
          {}};
}

// Takes tensors out of the file by name; what nobody took is an error, since a weight that is left
// out means wrong results.
class tensor_source {
 public:
  explicit tensor_source(const gguf_file& file) : file_(file) {}

  [[nodiscard]] matrix weights(const std::string& name, std::size_t outputs, std::size_t inputs) {
    const gguf_tensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) refuse(error_code::missing, name, "no such tensor", "its weights");
    if (tensor->rows != outputs || tensor->columns != inputs) {
      refuse(error_code::shape_mismatch, name,
             std::to_string(tensor->rows) + " rows of " + std::to_string(tensor->columns),
             std::to_string(outputs) + " rows of " + std::to_string(inputs));
    }
    taken_.insert(tensor->name);
    matrix result{outputs, inputs, std::vector<float>(outputs * inputs)};
    dequantize(tensor->type, tensor->bytes, result.values);
    return result;
  }

  [[nodiscard]] std::vector<float> vector(const std::string& name, std::size_t size) {
    return weights(name, 1, size).values;
  }

  [[nodiscard]] std::vector<float> optional_vector(const std::string& name, std::size_t size) {
    return has(name) ? vector(name, size) : std::vector<float>{};
  }

  [[nodiscard]] std::vector<float> rotation_factors(std::size_t size) {
    const std::string name = "rope_freqs.weight";
    std::vector<float> factors = optional_vector(name, size);
    for (const float factor : factors) {
      if (!(factor > 0)) {
        refuse(error_code::malformed, name, std::to_string(factor), "positive factors");
      }
    }
    return factors;
  }

  [[nodiscard]] bool has(const std::string& name) const {
    return file_.find_tensor(name) != nullptr;
  }

  void refuse_leftovers() const {
    for (const gguf_tensor& tensor : file_.tensors()) {
      if (!taken_.contains(tensor.name)) {
        refuse(error_code::unsupported, tensor.name, "a tensor that this engine has no use for",
               "the tensors of a llama or qwen2 model");
      }
    }
  }

 private:
  [[noreturn]] void refuse(error_code code, std::string_view name, std::string got,
                           std::string expected) const {
    headwise::raise(code, file_.path() + ", tensor " + headwise::in_quotes(name), std::move(got),
                    std::move(expected));
  }

  const gguf_file& file_;
  std::unordered_set<std::string_view> taken_;
};

layer_weights read_layer(tensor_source& source, const model_sizes& sizes, std::size_t number) {
  const std::string prefix = "blk." + std::to_string(number) + ".";
  const std::size_t embedding = sizes.embedding;
  const std::size_t query = std::size_t{sizes.attention.query_heads} * sizes.attention.head_dim;
  const std::size_t key = std::size_t{sizes.attention.kv_heads} * sizes.attention.head_dim;
  layer_weights layer;
  layer.attention_norm = source.vector(prefix + "attn_norm.weight", embedding);
  layer.query = source.weights(prefix + "attn_q.weight", query, embedding);
  layer.key = source.weights(prefix + "attn_k.weight", key, embedding);
  layer.value = source.weights(prefix + "attn_v.weight", key, embedding);
  layer.query_bias = source.optional_vector(prefix + "attn_q.bias", query);
  layer.key_bias = source.optional_vector(prefix + "attn_k.bias", key);
  layer.value_bias = source.optional_vector(prefix + "attn_v.bias", key);
  layer.attention_output = source.weights(prefix + "attn_output.weight", embedding, query);
  layer.feed_forward_norm = source.vector(prefix + "ffn_norm.weight", embedding);
  layer.gate = source.weights(prefix + "ffn_gate.weight", sizes.hidden, embedding);
  layer.up = source.weights(prefix + "ffn_up.weight", sizes.hidden, embedding);
  layer.down = source.weights(prefix + "ffn_down.weight", embedding, sizes.hidden);
  return layer;
}

}  // namespace

model::model(const std::filesystem::path& path) : model(gguf_file(path)) {}

model::model(const gguf_file& file)
    : name_(file.text("general.name", file.text("general.architecture"))), tokens_(file) {
  const architecture keys(file);
  sizes_ = read_sizes(keys, tokens_.size());
  rotation_ = read_rotation(keys, sizes_.attention.head_dim);
  tensor_source source(file);
  rotation_.factors = source.rotation_factors(rotation_.dimensions / 2);
  embeddings_ = source.weights("token_embd.weight", sizes_.vocabulary, sizes_.embedding);
  for (std::size_t i = 0; i < sizes_.attention.layers; ++i) {
    layers_.push_back(read_layer(source, sizes_, i));
  }
  output_norm_ = source.vector("output_norm.weight", sizes_.embedding);
  if (source.has("output.weight")) {
    output_ = source.weights("output.weight", sizes_.vocabulary, sizes_.embedding);
  }
  source.refuse_leftovers();
}

headwise::model_fingerprint model::fingerprint() const {
  return {name_, static_cast<std::uint32_t>(tokens_.size()), tokens_.hash()};
}

}  // namespace llama_example
