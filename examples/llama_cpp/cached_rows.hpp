// SPDX-License-Identifier: Apache-2.0
//
// cached_rows: the row_store of one pair of codecs, on a headwise::cache_manager. Threads and
// errors as row_store says.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "layer_work.hpp"
#include "row_store.hpp"

#include "headwise/core/error.hpp"
#include "headwise/manager/cache_manager.hpp"

namespace headwise_llama_cpp {

template <headwise::row_codec Key, headwise::row_codec Value>
class cached_rows : public row_store {
  using cache = headwise::cache_manager<headwise::builtin_policies, Key, Value>;
  using sequence = typename cache::sequence_type;
  using part = open_part<typename cache::step_type>;

 public:
  cached_rows(const headwise::blueprint& plan, const headwise::cache_config& config,
              const row_store_sizes& sizes)
      : capacity_(sizes.capacity),
        cache_(plan, config),
        work_(plan.shape, sizes, scratch_of(config, sizes)),
        keys_(sizes.micro_batch * plan.shape.kv_heads * plan.shape.head_dim,
              scratch_of(config, sizes)) {
    for (std::size_t i = 0; i < sizes.sequences; ++i) sequences_.push_back(cache_.open(capacity_));
    marks_.resize(sizes.sequences);
    parts_.reserve(sizes.sequences);
  }

  [[nodiscard]] bool try_begin(std::span<const step_part> parts) noexcept override {
    std::size_t first = 0;
    for (const step_part& p : parts) {
      auto step = sequences_[p.sequence].try_append(p.tokens);
      if (!step) {
        cancel();
        return false;
      }
      parts_.push_back({p.sequence, first, std::move(*step)});
      first += p.tokens.size();
    }
    return true;
  }
  void commit() noexcept override {
    for (part& p : parts_) std::move(p.step).commit();
    parts_.clear();
  }
  void cancel() noexcept override { parts_.clear(); }

  void add_keys(worker self, headwise::rows<const float> keys) noexcept override {
    // They are kept until the values come: a step takes both at once.
    const headwise::rows<float> kept(keys_.data(), keys.count, keys.width);
    for (std::size_t t = self.index; t < keys.count; t += self.count)
      std::copy(keys[t].begin(), keys[t].end(), kept[t].begin());
  }
  void add_values(worker self, std::uint32_t layer,
                  headwise::rows<const float> values) noexcept override {
    const std::size_t d = shape().head_dim;
    const headwise::rows<const float> keys(keys_.data(), values.count, values.width);
    for (part& p : parts_)
      for (std::size_t h = self.index; h < shape().kv_heads; h += self.count)
        p.step.write({layer, static_cast<std::uint32_t>(h)}, p.of(keys, h * d, d),
                     p.of(values, h * d, d));
    if (written_.is_last(self.count)) work_.split(parts_, layer);
  }
  void attend(worker self, std::uint32_t layer, headwise::rows<const float> queries, float scale,
              headwise::rows<float> out) noexcept override {
    work_.attend(self, parts_, layer, queries, scale, out);
  }

  [[nodiscard]] const headwise::model_shape& shape() const noexcept override {
    return cache_.shape();
  }
  [[nodiscard]] headwise::token_count length(std::size_t i) const noexcept override {
    return sequences_[i].length();
  }
  [[nodiscard]] headwise::cache_stats stats(std::size_t i) const noexcept override {
    return sequences_[i].stats();
  }
  [[nodiscard]] headwise::manager_stats stats() const noexcept override { return cache_.stats(); }
  [[nodiscard]] bool try_rollback(std::size_t i, headwise::token_count n) noexcept override {
    return sequences_[i].try_rollback(n);
  }
  void clear(std::size_t i) override { sequences_[i] = cache_.open(capacity_); }
  void fork(std::size_t from, std::size_t to) override { sequences_[to] = sequences_[from].fork(); }
  void mark(std::size_t i) override { marks_[i] = sequences_[i].fork(); }
  void go_back(std::size_t i) noexcept override {
    sequences_[i] = std::move(*marks_[i]);
    marks_[i].reset();
  }
  void drop_mark(std::size_t i) noexcept override { marks_[i].reset(); }

 private:
  [[nodiscard]] static std::pmr::memory_resource* scratch_of(
      const headwise::cache_config& config, const row_store_sizes& sizes) noexcept {
    return sizes.scratch != nullptr ? sizes.scratch : config.memory;
  }

  headwise::token_count capacity_;
  cache cache_;
  std::vector<sequence> sequences_;
  std::vector<std::optional<sequence>> marks_;  // [sequences]
  std::vector<part> parts_;                     // of the open steps
  layer_work<typename cache::step_type> work_;
  headwise::detail::flat_vector<float> keys_;  // [micro_batch, kv_heads * head_dim]
  arrivals written_;
};

}  // namespace headwise_llama_cpp
