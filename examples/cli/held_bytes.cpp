// SPDX-License-Identifier: Apache-2.0

#include "held_bytes.hpp"

#include <vector>

#include "headwise/manager/cache_manager.hpp"

namespace headwise_tool {
namespace {

using headwise::token_count;

// Mean over the steps of a text of `length` tokens.
template <headwise::row_codec Key, headwise::row_codec Value>
double mean_held(const headwise::blueprint& plan, token_count length) {
  measured_memory memory;
  headwise::cache_manager<headwise::builtin_policies, Key, Value> cache(plan,
                                                                        evaluated_cache(memory));
  auto text = cache.open();
  const std::size_t width = plan.shape.head_dim;
  const std::vector<float> zeros(step_tokens * width, 0.0F);
  const headwise::token_classifier classifier(plan.tokens.sink_count);
  std::vector<headwise::token> tokens;
  double held = 0.0, steps = 0.0;
  while (text.length() < length) {
    tokens.clear();
    const token_count end = std::min<token_count>(length, text.length() + step_tokens);
    for (headwise::position at = text.length(); at < end; ++at)
      tokens.push_back(classifier.classify(0, at));
    auto step = text.try_append(tokens);
    if (!step) throw std::bad_alloc();
    const headwise::rows<const float> rows(zeros.data(), tokens.size(), width);
    for (std::uint32_t layer = 0; layer < plan.shape.layers; ++layer)
      for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head)
        step->write({layer, head}, rows, rows);
    std::move(*step).commit();
    held += static_cast<double>(memory.held());
    steps += 1.0;
  }
  return held / steps;
}

double mean_held(const headwise::blueprint& plan, token_count length, cache_type type) {
  return with_codecs(type, [&]<class Key, class Value>(row_codecs<Key, Value>) {
    return mean_held<Key, Value>(plan, length);
  });
}

}  // namespace

headwise::cache_config evaluated_cache(measured_memory& memory) noexcept {
  headwise::cache_config config;
  config.page_tokens = 16;
  config.memory = &memory;
  return config;
}

headwise::blueprint uniform_window_plan(const headwise::model_shape& shape, token_count sinks,
                                        token_count window) {
  using headwise::make_spec;
  const headwise::local_window local(window);
  const headwise::special_tokens first(headwise::token_classes::sink);
  return headwise::uniform_blueprint(
      shape, sinks == 0 ? make_spec(local) : make_spec(headwise::union_of(first, local)), "window",
      {sinks, {}});
}

token_count window_that_holds(double wanted, const headwise::model_shape& shape, token_count sinks,
                              token_count length, cache_type type) {
  token_count low = 1, high = length;
  while (low < high) {
    const token_count middle = low + (high - low) / 2;
    if (mean_held(uniform_window_plan(shape, sinks, middle), length, type) >= wanted)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace headwise_tool
