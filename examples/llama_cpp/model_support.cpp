// SPDX-License-Identifier: Apache-2.0

#include "model_support.hpp"

#include <charconv>
#include <limits>

#include "headwise/core/error.hpp"

namespace headwise_llama_cpp {
namespace {

using headwise::error_code;

std::string architecture_key(const llama_model& model, const char* key) {
  return metadata(model, "general.architecture") + "." + key;
}

// 0 where the file does not say.
std::uint32_t number(const llama_model& model, const char* key) {
  const std::string text = metadata(model, architecture_key(model, key));
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

[[noreturn]] void refuse(const llama_model& model, const std::string& got, const char* expected) {
  headwise::raise(error_code::unsupported, "model " + name_of(model), got, expected);
}

void require_row_type(const char* name, ggml_type type) {
  if (type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) return;
  headwise::raise(error_code::unsupported, std::string("llama_context_params.") + name,
                  ggml_type_name(type),
                  "f32, f16 or bf16: llama.cpp rotates the rows of quantised caches, and how "
                  "headwise stores rows is an option of its own");
}

void require_count(const std::string& name, std::size_t got, std::size_t most) {
  if (got == 0) headwise::raise(error_code::invalid_argument, name, "0", "at least 1");
  if (got > most)
    headwise::raise(error_code::out_of_range, name, std::to_string(got),
                    "at most " + std::to_string(most));
}

void require_kind(const llama_model& model) {
  if (llama_model_is_recurrent(&model) || llama_model_is_hybrid(&model))
    refuse(model, "recurrent layers", "attention in every layer");
  if (llama_model_is_diffusion(&model))
    refuse(model, "a diffusion model", "a model that writes one token after the other");
  if (llama_model_has_encoder(&model) || !llama_model_has_decoder(&model))
    refuse(model, "an encoder", "a decoder alone");
  if (metadata(model, "general.architecture") == "grok")
    refuse(model, "logits that go through a tanh, but not in llama.cpp's flash attention",
           "one attention, whatever computes it");
  if (const std::uint32_t rank = number(model, "attention.kv_lora_rank"); rank != 0)
    refuse(model, "multi-head latent attention of rank " + std::to_string(rank),
           "keys and values that are rows of their own");
  if (const std::int32_t window = llama_model_n_swa(&model); window > 0)
    refuse(model, "sliding windows of " + std::to_string(window) + " tokens",
           "layers that see the whole text: a blueprint gives heads their windows");
}

}  // namespace

std::string metadata(const llama_model& model, const std::string& key) {
  const std::int32_t length = llama_model_meta_val_str(&model, key.c_str(), nullptr, 0);
  if (length < 0) return {};
  std::string text(static_cast<std::size_t>(length) + 1, '\0');  // and the end that C wants
  llama_model_meta_val_str(&model, key.c_str(), text.data(), text.size());
  text.pop_back();
  return text;
}

std::string name_of(const llama_model& model) {
  std::string name = metadata(model, "general.name");
  return name.empty() ? metadata(model, "general.architecture") : name;
}

headwise::model_shape shape_of(const llama_model& model) {
  const auto count = [](std::int32_t n) { return static_cast<std::uint32_t>(n); };
  headwise::model_shape shape{count(llama_model_n_layer(&model)), count(llama_model_n_head(&model)),
                              count(llama_model_n_head_kv(&model)),
                              number(model, "attention.key_length")};
  if (shape.head_dim == 0 && shape.query_heads != 0)
    shape.head_dim = count(llama_model_n_embd(&model)) / shape.query_heads;
  return shape;
}

std::size_t vocabulary_size(const llama_model& model) {
  return static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(&model)));
}

void require_sizes(const std::string& options, const text_sizes& sizes) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<llama_pos>::max());
  require_count(options + ".capacity", sizes.capacity, most);
  require_count(options + ".micro_batch", sizes.micro_batch, most);
  require_count(options + ".sequences", sizes.sequences, llama_max_parallel_sequences());
}

void require_supported(const llama_model& model, const llama_context_params& params) {
  require_kind(model);
  require_row_type("type_k", params.type_k);
  require_row_type("type_v", params.type_v);
  if (params.cb_eval != nullptr)
    headwise::raise(error_code::unsupported, "llama_context_params.cb_eval",
                    "an evaluation callback", "none: the adapter puts its own there");
  if (params.embeddings)
    headwise::raise(error_code::unsupported, "llama_context_params", "embeddings",
                    "a context that writes text");
}

void require_rotation_of(const llama_model& model, std::size_t cells,
                         headwise::token_count capacity) {
  std::uint32_t first = number(model, "rope.scaling.original_context_length");
  if (first == 0) first = static_cast<std::uint32_t>(llama_model_n_ctx_train(&model));
  if ((cells > first) != (capacity > first))
    refuse(model,
           "texts of " + std::to_string(capacity) + " tokens, rotated as in a cache of " +
               std::to_string(cells),
           ("both at most " + std::to_string(first) +
            ", or both more: beyond, the model rotates by other factors")
               .c_str());
}

}  // namespace headwise_llama_cpp
