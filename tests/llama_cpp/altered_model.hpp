// SPDX-License-Identifier: Apache-2.0
//
// A GGUF file with the metadata of another and one entry more or changed.
#pragma once

#include <filesystem>
#include <memory>

#include <gguf.h>

#include "models.hpp"

namespace headwise_tests {

struct gguf_deleter {
  void operator()(gguf_context* file) const noexcept { gguf_free(file); }
  void operator()(ggml_context* tensors) const noexcept { ggml_free(tensors); }
};

// alter(file): changes its metadata.
template <class Alter>
void write_altered(const std::filesystem::path& from, const std::filesystem::path& to,
                   const Alter& alter) {
  ggml_context* loaded = nullptr;
  const std::unique_ptr<gguf_context, gguf_deleter> source(
      gguf_init_from_file(from.string().c_str(), {false, &loaded}));
  ASSERT_NE(source, nullptr);
  const std::unique_ptr<ggml_context, gguf_deleter> tensors(loaded);
  const std::unique_ptr<gguf_context, gguf_deleter> file(gguf_init_empty());
  gguf_set_kv(file.get(), source.get());
  alter(file.get());
  for (std::int64_t i = 0; i < gguf_get_n_tensors(source.get()); ++i)
    gguf_add_tensor(file.get(),
                    ggml_get_tensor(tensors.get(), gguf_get_tensor_name(source.get(), i)));
  ASSERT_TRUE(gguf_write_to_file(file.get(), to.string().c_str(), false));
}

}  // namespace headwise_tests
