// SPDX-License-Identifier: Apache-2.0
//
// One of the program's engines behind one interface: a text goes in, logits come out.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "options.hpp"

namespace headwise_llama_cpp {

class text_engine {
 public:
  using logits_visitor =
      std::function<void(headwise::position first, headwise::rows<const float> logits)>;

  virtual ~text_engine() = default;
  // Appends tokens; the last one's logits, valid until the next call.
  virtual std::span<const float> feed(std::span<const llama_token> ids) = 0;
  // The same with the logits of all.
  virtual void feed(std::span<const llama_token> ids, const logits_visitor& visit) = 0;
  // One line on what holds the text's rows, and how many bytes.
  [[nodiscard]] virtual std::string describe() const = 0;
};

// capacity: the most tokens of the text.
[[nodiscard]] std::unique_ptr<text_engine> make_text_engine(llama_model& model,
                                                            const run_options& options,
                                                            headwise::token_count capacity);

}  // namespace headwise_llama_cpp
