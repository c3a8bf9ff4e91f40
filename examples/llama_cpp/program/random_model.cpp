// SPDX-License-Identifier: Apache-2.0

#include "random_model.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include <ggml-backend.h>
#include <gguf.h>

namespace headwise_llama_cpp {
namespace {

struct file_deleter {
  void operator()(gguf_context* file) const noexcept { gguf_free(file); }
  void operator()(ggml_context* tensors) const noexcept { ggml_free(tensors); }
};
using file_handle = std::unique_ptr<gguf_context, file_deleter>;
using tensors_handle = std::unique_ptr<ggml_context, file_deleter>;

constexpr std::size_t most_tensors = 4096;

void set(gguf_context* file, const std::string& key, const metadata_value& value) {
  const char* const name = key.c_str();
  if (const auto* n = std::get_if<std::uint32_t>(&value)) gguf_set_val_u32(file, name, *n);
  if (const auto* x = std::get_if<float>(&value)) gguf_set_val_f32(file, name, *x);
  if (const auto* truth = std::get_if<bool>(&value)) gguf_set_val_bool(file, name, *truth);
  if (const auto* text = std::get_if<std::string>(&value))
    gguf_set_val_str(file, name, text->c_str());
  if (const auto* each = std::get_if<std::vector<std::uint32_t>>(&value))
    gguf_set_arr_data(file, name, GGUF_TYPE_UINT32, each->data(), each->size());
}

file_handle make_file(const std::string& architecture, const metadata_map& metadata) {
  file_handle file(gguf_init_empty());
  set(file.get(), "general.architecture", architecture);
  set(file.get(), "tokenizer.ggml.model", std::string("no_vocab"));
  for (const auto& [key, value] : metadata) set(file.get(), architecture + "." + key, value);
  return file;
}

bool is_matrix(const ggml_tensor& tensor) {
  return tensor.ne[1] > 1;
}

// Numbers that are the same on every platform and others for every name, of about `scale` at most.
class number_source {
 public:
  number_source(std::string_view name, float scale) : scale_(scale) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  float next() noexcept {
    state_ ^= state_ << 13U, state_ ^= state_ >> 7U, state_ ^= state_ << 17U;
    return scale_ * (static_cast<float>(state_ >> 40U) * 0x1p-23F - 1.0F);
  }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325U;
  float scale_;
};

// Whether the tensor only scales what others give.
bool is_near_one(std::string_view name) {
  for (const std::string_view part : {"norm.weight", "rope_factors", "rope_freqs", "scale"})
    if (name.find(part) != name.npos) return true;
  return false;
}

// Rows of matrices keep the size of what they multiply.
void fill(ggml_tensor* tensor, void*) {
  const float middle = is_near_one(tensor->name) ? 1.0F : 0.0F;
  const float width = static_cast<float>(tensor->ne[0]);
  number_source numbers(tensor->name,
                        is_matrix(*tensor) ? std::min(0.2F, 2.0F / std::sqrt(width)) : 0.2F);
  std::vector<float> row(static_cast<std::size_t>(tensor->ne[0]));
  std::vector<std::byte> encoded(ggml_row_size(tensor->type, tensor->ne[0]));
  for (std::size_t r = 0; r < static_cast<std::size_t>(ggml_nrows(tensor)); ++r) {
    for (float& x : row) x = numbers.next() + middle;
    if (tensor->type == GGML_TYPE_F16)
      ggml_fp32_to_fp16_row(row.data(), reinterpret_cast<ggml_fp16_t*>(encoded.data()),
                            tensor->ne[0]);
    else
      std::copy_n(reinterpret_cast<const std::byte*>(row.data()), encoded.size(), encoded.data());
    ggml_backend_tensor_set(tensor, encoded.data(), r * encoded.size(), encoded.size());
  }
}

model_handle make_model(gguf_context* file, llama_model_set_tensor_data_t set_data, void* data) {
  model_handle model(llama_model_init_from_user(file, set_data, data, cpu_model_params()));
  if (!model)
    headwise::raise(headwise::error_code::unsupported, "random model", "what llama.cpp refuses",
                    "the metadata that its architecture asks for");
  return model;
}

// llama.cpp makes tensors of 32 bits but for those that the file declares otherwise. What there is
// to declare, it tells when it makes the model.
struct declaration {
  gguf_context* file;
  ggml_context* tensors;
  ggml_type type;
  static void add(ggml_tensor* tensor, void* data) {
    const auto& self = *static_cast<const declaration*>(data);
    if (!is_matrix(*tensor)) return;
    ggml_tensor* const declared = ggml_new_tensor(self.tensors, self.type, 2, tensor->ne);
    ggml_set_name(declared, tensor->name);
    gguf_add_tensor(self.file, declared);
  }
};

}  // namespace

model_handle make_random_model(const std::string& architecture, const metadata_map& metadata,
                               ggml_type matrices) {
  const file_handle file = make_file(architecture, metadata);
  if (matrices == GGML_TYPE_F32) return make_model(file.get(), &fill, nullptr);
  const tensors_handle tensors(ggml_init({most_tensors * ggml_tensor_overhead(), nullptr, true}));
  const file_handle declared = make_file(architecture, metadata);
  declaration all{declared.get(), tensors.get(), matrices};
  static_cast<void>(make_model(file.get(), &declaration::add, &all));
  return make_model(declared.get(), &fill, nullptr);
}

model_handle make_8b_like_model(std::uint32_t layers) {
  return make_random_model("llama",
                           {{"block_count", layers},
                            {"context_length", 131072U},
                            {"embedding_length", 4096U},
                            {"feed_forward_length", 14336U},
                            {"attention.head_count", 32U},
                            {"attention.head_count_kv", 8U},
                            {"attention.layer_norm_rms_epsilon", 1e-5F},
                            {"rope.dimension_count", 128U},
                            {"rope.freq_base", 500000.0F},
                            {"vocab_size", 1024U}},
                           GGML_TYPE_F16);
}

}  // namespace headwise_llama_cpp
