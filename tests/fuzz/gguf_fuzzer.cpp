// SPDX-License-Identifier: Apache-2.0
//
// The input as a GGUF file: its tensors, the tokenizer that it describes, and the model.
#include "fuzz/target.hpp"
#include "llama/model.hpp"
#include "llama/tokenizer.hpp"

namespace headwise_tests {
namespace {

void decode(const llama_example::gguf_tensor& tensor) {
  touch(tensor.bytes);
  std::vector<float> row(tensor.columns);
  const std::size_t row_bytes = tensor.bytes.size() / tensor.rows;
  for (std::size_t i = 0; i < tensor.rows; ++i)
    dequantize(tensor.type, tensor.bytes.subspan(i * row_bytes, row_bytes), row);
}

// Whatever the vocabulary, ids are in its range and have a text.
void use(const llama_example::tokenizer& tokens) {
  constexpr std::string_view text =
      "The cat's 12 caf\xC3\xA9s,\n\n  \xE6\x97\xA5\xE6\x9C\xAC <|end|></s> \xFF\xC0 the  end. ";
  for (const bool special : {false, true}) {
    const auto ids = tokens.encode(text, {true, special});
    for (const std::int32_t id : ids)
      require(id >= 0 && static_cast<std::size_t>(id) < tokens.size(), "an id has its token");
    touch(tokens.decode(ids));
  }
  for (std::size_t id = 0; id < tokens.size(); ++id)
    touch(tokens.piece(static_cast<std::int32_t>(id)));
}

}  // namespace
}  // namespace headwise_tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headwise_tests;
  static const input_file input;
  input.hold(data, size);
  accepts([&] {
    const llama_example::gguf_file file(input.path());
    for (const auto& tensor : file.tensors()) decode(tensor);
    use(llama_example::tokenizer(file));
  });
  accepts([&] {
    const llama_example::model model(input.path());
    require(model.tokens().size() == model.sizes().vocabulary, "a model has its tokens");
  });
  return 0;
}
