// SPDX-License-Identifier: Apache-2.0

#include "session.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace llama_example {
namespace {

using headwise::error_code;
using headwise::head_id;
using headwise::position;

// The columns of `heads` neighbouring heads, from head `first` on: [tokens, heads * head_dim].
template <class T>
rows<T> head_columns(rows<T> x, std::size_t first, std::size_t head_dim) {
  return {x.data + first * head_dim, x.count, head_dim, x.stride};
}

// The rows of one token's query heads `first` to `first + count`: [count, head_dim].
template <class T>
rows<T> head_rows(rows<T> x, std::size_t token, std::size_t first, std::size_t count,
                  std::size_t head_dim) {
  return {x[token].data() + first * head_dim, count, head_dim};
}

const headwise::blueprint& matching(const headwise::blueprint& plan, const model& weights) {
  headwise::require_match(plan, weights.shape(), weights.fingerprint());
  return plan;
}

const session_options& checked(const session_options& options) {
  if (options.chunk == 0 || options.capacity == 0) {
    headwise::raise(error_code::invalid_argument, "session_options.chunk and capacity",
                    std::to_string(options.chunk) + " and " + std::to_string(options.capacity),
                    "at least 1 each");
  }
  return options;
}

}  // namespace

template <headwise::row_codec Key, headwise::row_codec Value>
session<Key, Value>::session(const model& weights, const headwise::blueprint& plan,
                             session_options options)
    : model_(weights),
      options_(checked(options)),
      classifier_(headwise::make_classifier(
          matching(plan, weights).tokens, static_cast<std::uint32_t>(weights.sizes().vocabulary))),
      cache_(plan, options.cache),
      text_(cache_.open(options.capacity)),
      scratch_(weights.shape().group_size(), weights.shape().head_dim, options.capacity),
      rope_(weights.rotation()),
      x_(options.chunk, weights.sizes().embedding),
      normed_(options.chunk, weights.sizes().embedding),
      query_(options.chunk, weights.shape().query_heads * weights.shape().head_dim),
      key_(options.chunk, weights.shape().kv_heads * weights.shape().head_dim),
      value_(options.chunk, weights.shape().kv_heads * weights.shape().head_dim),
      attended_(options.chunk, weights.shape().query_heads * weights.shape().head_dim),
      gate_(options.chunk, weights.sizes().hidden),
      up_(options.chunk, weights.sizes().hidden),
      logits_(weights.sizes().vocabulary) {
  tokens_.reserve(options.chunk);
}

template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::check(std::span<const std::int32_t> ids) const {
  if (ids.size() > options_.capacity - length()) {
    headwise::raise(error_code::out_of_range, "session",
                    std::to_string(ids.size()) + " tokens more than " + std::to_string(length()),
                    "at most " + std::to_string(options_.capacity) + " in all");
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= model_.sizes().vocabulary) {
      headwise::raise(error_code::out_of_range, "token ids[" + std::to_string(i) + "]",
                      std::to_string(ids[i]),
                      "an id below " + std::to_string(model_.sizes().vocabulary));
    }
  }
}

template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::feed(std::span<const std::int32_t> ids, const logits_visitor& visit) {
  check(ids);
  const std::size_t vocabulary = model_.sizes().vocabulary;
  while (!ids.empty()) {
    const position first = length();
    const auto chunk = ids.first(std::min(options_.chunk, ids.size()));
    logits_.resize(std::max(logits_.size(), chunk.size() * vocabulary));
    const rows<float> logits(logits_.data(), chunk.size(), vocabulary);
    output_logits(run_chunk(chunk), logits);
    visit(first, logits);
    ids = ids.subspan(chunk.size());
  }
}

template <headwise::row_codec Key, headwise::row_codec Value>
std::span<const float> session<Key, Value>::feed(std::span<const std::int32_t> ids) {
  check(ids);
  const std::span<float> logits(logits_.data(), model_.sizes().vocabulary);
  while (!ids.empty()) {
    const auto chunk = ids.first(std::min(options_.chunk, ids.size()));
    const rows<float> x = run_chunk(chunk);
    ids = ids.subspan(chunk.size());
    if (ids.empty())
      output_logits({x[x.count - 1].data(), 1, x.width}, {logits.data(), 1, logits.size()});
  }
  return logits;
}

template <headwise::row_codec Key, headwise::row_codec Value>
rows<float> session<Key, Value>::run_chunk(std::span<const std::int32_t> ids) {
  const position first = length();
  tokens_.clear();
  for (const std::int32_t id : ids) {
    tokens_.push_back(classifier_.classify(id, first + static_cast<position>(tokens_.size())));
  }
  auto open = text_.try_append(tokens_);
  if (!open) {
    headwise::raise(error_code::out_of_memory, "cache at position " + std::to_string(first),
                    "no pages for " + std::to_string(ids.size()) + " tokens",
                    std::to_string(text_.pages_needed(tokens_)) + " free pages");
  }

  const rows<float> x = x_.first(ids.size());
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto embedding = model_.embeddings().row(static_cast<std::size_t>(ids[t]));
    std::copy(embedding.begin(), embedding.end(), x[t].begin());
  }
  rope_.place(first, ids.size());
  for (std::uint32_t layer = 0; layer < model_.shape().layers; ++layer) {
    attention_block(*open, layer, x);
    feed_forward_block(model_.layers()[layer], x);
  }
  std::move(*open).commit();
  return x;
}

template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::attention_block(step& open, std::uint32_t layer, rows<float> x) {
  const layer_weights& weights = model_.layers()[layer];
  const rows<float> normed = normed_.first(x.count);
  const rows<float> query = query_.first(x.count);
  const rows<float> key = key_.first(x.count);
  const rows<float> value = value_.first(x.count);

  rms_norm(x, weights.attention_norm, model_.sizes().norm_epsilon, normed);
  linear(normed, weights.query, query);
  linear(normed, weights.key, key);
  linear(normed, weights.value, value);
  add_bias(weights.query_bias, query);
  add_bias(weights.key_bias, key);
  add_bias(weights.value_bias, value);
  rope_.rotate(query, model_.shape().head_dim);
  rope_.rotate(key, model_.shape().head_dim);
  attention(open, layer, x.count);
  linear(attended_.first(x.count), weights.attention_output, normed);
  add(normed, x);
}

// All that a layer asks of the cache: its rows in, and for each query what it sees.
template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::attention(step& open, std::uint32_t layer, std::size_t tokens) {
  const headwise::model_shape& shape = model_.shape();
  const std::size_t head_dim = shape.head_dim;
  const std::size_t group = shape.group_size();
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  const position first = open.tokens().front().pos;
  if (recorder_) map_.assign(shape.query_heads * tokens * (first + tokens), 0.0F);

  for (std::uint32_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    const head_id head{layer, kv_head};
    open.write(head, head_columns<const float>(key_.first(tokens), kv_head, head_dim),
               head_columns<const float>(value_.first(tokens), kv_head, head_dim));
    for (std::size_t t = 0; t < tokens; ++t) {
      const auto view = open.head(head);  // what a ranked head shows depends on the queries before
      headwise::attend(
          view, first + static_cast<position>(t),
          head_rows<const float>(query_.first(tokens), t, kv_head * group, group, head_dim), scale,
          head_rows(attended_.first(tokens), t, kv_head * group, group, head_dim), {}, scratch_);
      if (recorder_) record_row(view, kv_head, t, tokens);
    }
  }
  if (recorder_) recorder_({layer, first, shape.query_heads, tokens, first + tokens, map_});
}

// Lays the probabilities of the last attend out by position.
template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::record_row(const typename cache::view_type& view, std::uint32_t kv_head,
                                     std::size_t query, std::size_t queries) {
  const std::size_t group = model_.shape().group_size();
  const std::size_t keys = map_.size() / (model_.shape().query_heads * queries);
  const auto at = static_cast<position>(keys - queries + query);
  for (std::size_t g = 0; g < group; ++g) {
    float* const row = map_.data() + ((kv_head * group + g) * queries + query) * keys;
    const float* weight = scratch_.weights()[g].data();
    view.for_each_slab(at, [&](const headwise::slab& seen) {
      for (std::uint32_t r = 0; r < seen.count; ++r) row[seen.positions[r]] = *weight++;
    });
  }
}

template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::feed_forward_block(const layer_weights& layer, rows<float> x) {
  const rows<float> normed = normed_.first(x.count);
  const rows<float> gate = gate_.first(x.count);
  const rows<float> up = up_.first(x.count);
  rms_norm(x, layer.feed_forward_norm, model_.sizes().norm_epsilon, normed);
  linear(normed, layer.gate, gate);
  linear(normed, layer.up, up);
  swiglu(up, gate);
  linear(gate, layer.down, normed);
  add(normed, x);
}

template <headwise::row_codec Key, headwise::row_codec Value>
void session<Key, Value>::output_logits(rows<const float> x, rows<float> logits) {
  const rows<float> normed = normed_.first(x.count);
  rms_norm(x, model_.output_norm(), model_.sizes().norm_epsilon, normed);
  linear(normed, model_.output(), logits);
}

template class session<headwise::f32>;
template class session<headwise::f16>;
template class session<headwise::bf16>;
template class session<headwise::int8_row>;
template class session<headwise::int4_group>;
template class session<headwise::int8_row, headwise::int4_group>;

}  // namespace llama_example
