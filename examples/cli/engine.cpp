// SPDX-License-Identifier: Apache-2.0

#include "engine.hpp"

#include "llama_cpp_engine.hpp"
#include "small_engine.hpp"
#include "usage_error.hpp"

namespace headwise_tool {

std::unique_ptr<engine> load_engine(const engine_choice& choice,
                                    const std::filesystem::path& model) {
  if (choice.kind == engine_kind::llama_cpp) return load_llama_cpp_engine(model, choice.threads);
  if (choice.threads != 0)
    throw usage_error("--threads: the small engine has one; give --engine llama.cpp with it");
  return load_small_engine(model);
}

}  // namespace headwise_tool
