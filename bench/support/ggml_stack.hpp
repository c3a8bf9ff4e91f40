// SPDX-License-Identifier: Apache-2.0
//
// ggml_stack: the attention of a stack of layers as llama.cpp asks ggml for it: a cache in which
// all KV heads of a token lie side by side, values transposed where flash attention is off, one
// graph for all layers that is built once. One thread.
#pragma once

#include <stdexcept>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "support/layer_problem.hpp"

namespace headwise_bench {

[[nodiscard]] inline ggml_backend_ptr one_thread_of_cpu() {
  ggml_backend_load_all();
  ggml_backend_ptr backend(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
  if (backend == nullptr) throw std::runtime_error("ggml has no backend for the CPU");
  auto* const registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend.get()));
  const auto set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(
      ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads"));
  set_threads(backend.get(), 1);
  return backend;
}

// Codec: the element type of keys and values, f16 or f32.
template <headwise::row_codec Codec>
class ggml_stack {
 public:
  ggml_stack(const problem& p, std::size_t layers, bool flash)
      : problem_(p),
        flash_(flash),
        tensors_(new_context(3 * layers + 8)),
        nodes_(new_context(16 * layers + 8)),
        queries_(ggml_new_tensor_3d(tensors_.get(), GGML_TYPE_F32, p.head_dim, 1, query_heads())),
        mask_(ggml_new_tensor_2d(tensors_.get(), flash ? GGML_TYPE_F16 : GGML_TYPE_F32, p.length,
                                 mask_rows)),
        graph_(ggml_new_graph_custom(nodes_.get(), 16 * layers + 8, false)) {
    for (std::size_t layer = 0; layer < layers; ++layer) {
      keys_.push_back(ggml_new_tensor_2d(tensors_.get(), type, width(), p.length));
      values_.push_back(flash ? ggml_new_tensor_2d(tensors_.get(), type, width(), p.length)
                              : ggml_new_tensor_2d(tensors_.get(), type, p.length, width()));
    }
    memory_.reset(ggml_backend_alloc_ctx_tensors(tensors_.get(), backend_.get()));
    fill();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      last_ = flash ? with_flash(layer) : without_flash(layer);
      ggml_set_output(last_);
      ggml_build_forward_expand(graph_, last_);
    }
    temporary_.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend_.get())));
    if (memory_ == nullptr || !ggml_gallocr_alloc_graph(temporary_.get(), graph_))
      throw std::runtime_error("ggml has no memory for its graph");
  }

  // All layers, once.
  void run() {
    if (ggml_backend_graph_compute(backend_.get(), graph_) != GGML_STATUS_SUCCESS)
      throw std::runtime_error("ggml does not compute its graph");
  }
  // The magnitudes of the last layer's output.
  [[nodiscard]] double checksum() const {
    std::vector<float> out(static_cast<std::size_t>(ggml_nelements(last_)));
    ggml_backend_tensor_get(last_, out.data(), 0, ggml_nbytes(last_));
    return magnitude(out);
  }
  [[nodiscard]] std::size_t bytes() const { return keys_.size() * 2 * ggml_nbytes(keys_.front()); }

 private:
  static constexpr ggml_type type =
      std::is_same_v<Codec, headwise::f16> ? GGML_TYPE_F16 : GGML_TYPE_F32;
#ifdef GGML_KQ_MASK_PAD
  static constexpr std::int64_t mask_rows = GGML_KQ_MASK_PAD;
#else
  static constexpr std::int64_t mask_rows = 1;
#endif

  [[nodiscard]] static ggml_context_ptr new_context(std::size_t tensors) {
    return ggml_context_ptr(
        ggml_init({tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(tensors, false),
                   nullptr, true}));
  }
  [[nodiscard]] std::int64_t query_heads() const {
    return std::int64_t{kv_heads} * problem_.group_size;
  }
  // Of all KV heads of a token.
  [[nodiscard]] std::int64_t width() const {
    return std::int64_t{kv_heads} * problem_.head_dim;
  }

  // [head_dim, tokens, kv_heads], in ggml's order, of a cache that holds token after token.
  [[nodiscard]] ggml_tensor* by_head(ggml_tensor* cache) const {
    return ggml_view_3d(nodes_.get(), cache, problem_.head_dim, problem_.length, kv_heads,
                        ggml_row_size(type, width()), ggml_row_size(type, problem_.head_dim), 0);
  }
  [[nodiscard]] ggml_tensor* with_flash(std::size_t layer) const {
    ggml_tensor* const out =
        ggml_flash_attn_ext(nodes_.get(), queries_, by_head(keys_[layer]), by_head(values_[layer]),
                            mask_, problem_.scale(), 0.0F, 0.0F);
    return ggml_reshape_2d(nodes_.get(), out, out->ne[0] * out->ne[1], out->ne[2] * out->ne[3]);
  }
  [[nodiscard]] ggml_tensor* without_flash(std::size_t layer) const {
    ggml_context* const nodes = nodes_.get();
    ggml_tensor* weights = ggml_mul_mat(nodes, by_head(keys_[layer]), queries_);
    weights = ggml_soft_max_ext(nodes, weights, mask_, problem_.scale(), 0.0F);
    ggml_tensor* const transposed =
        ggml_view_3d(nodes, values_[layer], problem_.length, problem_.head_dim, kv_heads,
                     ggml_row_size(type, problem_.length),
                     ggml_row_size(type, problem_.length) * problem_.head_dim, 0);
    ggml_tensor* const out =
        ggml_permute(nodes, ggml_mul_mat(nodes, transposed, weights), 0, 2, 1, 3);
    return ggml_cont_2d(nodes, out, out->ne[0] * out->ne[1], out->ne[2] * out->ne[3]);
  }

  static void set(ggml_tensor* tensor, const std::vector<std::byte>& bytes) {
    ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
  }
  void fill() {
    const inputs& in = inputs_of(problem_);
    const auto keys = by_token(in.keys);
    const auto values = flash_ ? by_token(in.values) : by_channel(in.values);
    for (ggml_tensor* const tensor : keys_) set(tensor, keys);
    for (ggml_tensor* const tensor : values_) set(tensor, values);
    set(mask_, std::vector<std::byte>(ggml_nbytes(mask_)));  // 0: every token is seen
    const auto queries = in.queries.view(0, 0, std::size_t{kv_heads} * problem_.group_size);
    ggml_backend_tensor_set(queries_, queries.data, 0, ggml_nbytes(queries_));
  }
  // [tokens, kv_heads, head_dim]
  [[nodiscard]] std::vector<std::byte> by_token(const row_table& rows) const {
    const std::size_t row_bytes = Codec::row_bytes(problem_.head_dim);
    std::vector<std::byte> bytes(problem_.length * kv_heads * row_bytes);
    for (headwise::position pos = 0; pos < problem_.length; ++pos)
      for (std::size_t head = 0; head < kv_heads; ++head)
        Codec::encode(rows.view(head, pos, 1)[0],
                      bytes.data() + (std::size_t{pos} * kv_heads + head) * row_bytes);
    return bytes;
  }
  // [kv_heads, head_dim, tokens]
  [[nodiscard]] std::vector<std::byte> by_channel(const row_table& rows) const {
    const std::size_t channel_bytes = Codec::row_bytes(problem_.length);
    std::vector<std::byte> bytes(kv_heads * problem_.head_dim * channel_bytes);
    std::vector<float> channel(problem_.length);
    for (std::size_t head = 0; head < kv_heads; ++head)
      for (std::size_t i = 0; i < problem_.head_dim; ++i) {
        for (headwise::position pos = 0; pos < problem_.length; ++pos)
          channel[pos] = rows.view(head, pos, 1)[0][i];
        Codec::encode(channel, bytes.data() + (head * problem_.head_dim + i) * channel_bytes);
      }
    return bytes;
  }

  problem problem_;
  bool flash_;
  ggml_backend_ptr backend_ = one_thread_of_cpu();
  ggml_context_ptr tensors_, nodes_;
  ggml_tensor *queries_, *mask_;
  std::vector<ggml_tensor*> keys_, values_;  // [layers]
  ggml_backend_buffer_ptr memory_;
  ggml_cgraph* graph_;
  ggml_tensor* last_ = nullptr;
  ggml_gallocr_ptr temporary_;
};

}  // namespace headwise_bench
