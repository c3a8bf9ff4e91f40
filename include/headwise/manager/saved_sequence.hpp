// SPDX-License-Identifier: Apache-2.0
//
// A sequence to a stream and back, so that decoding goes on bit for bit as if nothing had been:
// rows, positions, scores, and what rollbacks within the horizon need.
//
//   save(text, out);
//   std::optional text = try_restore(cache, in);
//
//   file = archive header | codecs, shape, horizon | policies | the state | checksum
//   a row of the state = its position (4 bytes), its key and its value as the codecs hold them
//
// A file is read by a manager of the same codecs, shape, horizon and plan; its page size may
// differ. Where rows lie in the first page is kept, so equal sequences may have unequal files.
// Whatever is wrong with a file, the manager and its sequences stay as they were. O(bytes). One
// owner thread, as for open().
#pragma once

#include <map>
#include <optional>
#include <string>

#include "headwise/core/archive.hpp"
#include "headwise/manager/cache_manager.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

struct saved_access {
  template <class Sequence>
  [[nodiscard]] static auto& state(Sequence& text) noexcept {
    return text.state();
  }

  // What the file says of the cache that it is for; checked against `state`'s when it is read.
  template <class Policies, class Key, class Value>
  static void save_header(saving_archive& archive, const sequence_state<Policies>& state) {
    text(archive, Key::name);
    text(archive, Value::name);
    const model_shape& shape = state.shape();
    for (const std::uint32_t size :
         {shape.layers, shape.query_heads, shape.kv_heads, shape.head_dim, state.horizon()})
      archive.number(size);
    std::map<std::string, std::uint32_t> numbers;
    std::vector<std::uint32_t> of_head;
    for (const auto& policy : state.plan())
      of_head.push_back(
          numbers.emplace(to_string(make_spec(policy)), static_cast<std::uint32_t>(numbers.size()))
              .first->second);
    std::vector<const std::string*> texts(numbers.size());
    for (const auto& [policy, number] : numbers) texts[number] = &policy;
    archive.number(static_cast<std::uint32_t>(texts.size()));
    for (const std::string* policy : texts) text(archive, *policy);
    archive.bytes(of_head.data(), of_head.size() * sizeof of_head[0]);
    for (std::size_t head = 0; head < of_head.size(); ++head)
      archive.number(state.pool(head) == nullptr ? token_count{0} : state.pool(head)->capacity());
  }
  // Returns the rows of each head's pool.
  template <class Manager>
  [[nodiscard]] static std::vector<token_count> load_header(
      loading_archive& archive, const Manager& cache,
      const std::vector<typename Manager::policy>& plan) {
    using view = typename Manager::view_type;
    expect_text(archive, "codec of keys", view::key_codec::name);
    expect_text(archive, "codec of values", view::value_codec::name);
    const model_shape& shape = cache.shape();
    archive.expect("layers", shape.layers);
    archive.expect("query heads", shape.query_heads);
    archive.expect("KV heads", shape.kv_heads);
    archive.expect("head_dim", shape.head_dim);
    archive.expect("rollback_horizon", cache.config_.rollback_horizon);
    std::uint32_t count = 0;
    archive.number(count);
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) texts.push_back(text(archive));
    for (std::size_t head = 0; head < plan.size(); ++head) {
      std::uint32_t number = 0;
      archive.number(number);
      const std::string expected = to_string(make_spec(plan[head]));
      if (number >= texts.size() || texts[number] != expected)
        archive.fail(error_code::shape_mismatch,
                     "head " + std::to_string(head) + " with " +
                         (number < texts.size() ? texts[number] : std::string("no policy")),
                     expected);
    }
    std::vector<token_count> pools(plan.size());
    for (std::size_t head = 0; head < plan.size(); ++head) {
      const token_count most = pool_rows_of(plan[head], max_length);
      archive.number_up_to("heavy hitters of head " + std::to_string(head), pools[head], most);
      if ((pools[head] == 0) != (most == 0))
        archive.fail(error_code::malformed, "no pool", "heavy hitters, as the policy says");
    }
    return pools;
  }

  template <class Manager>
  [[nodiscard]] static std::optional<typename Manager::sequence_type> restore(
      Manager& cache, std::istream& in, const std::vector<typename Manager::policy>& plan,
      const std::string& place) {
    using policy = typename Manager::policy;
    loading_archive archive(in, place);
    const std::vector<token_count> pools = load_header(archive, cache, plan);
    typename Manager::sequence_type text(make_state<typename Manager::policies>(
        &cache.memory_, &cache.sequences_, cache.shape_, std::span<const policy>(plan),
        cache.config_.rollback_horizon, cache.config_.step_tokens, cache.pool_,
        [&](std::size_t h) { return pools[h]; }));
    if (!state(text).transfer(archive)) return std::nullopt;
    archive.finish();
    return text;
  }

 private:
  static void text(saving_archive& archive, std::string_view value) {
    archive.number(static_cast<std::uint32_t>(value.size()));
    archive.bytes(value.data(), value.size());
  }
  [[nodiscard]] static std::string text(loading_archive& archive) {
    std::uint32_t size = 0;
    archive.number(size);
    std::string result;
    while (result.size() < size) {
      const std::size_t before = result.size();
      result.resize(before + std::min<std::size_t>(size - before, 4096));
      archive.bytes(result.data() + before, result.size() - before);
    }
    return result;
  }
  static void expect_text(loading_archive& archive, const char* what, std::string_view expected) {
    const std::string got = text(archive);
    if (got != expected)
      archive.fail(error_code::shape_mismatch, what + (" " + got),
                   what + (" " + std::string(expected)));
  }
};

}  // namespace detail

// Bytes that save() writes.
template <class Policies, row_codec Key, row_codec Value>
[[nodiscard]] std::uint64_t saved_bytes(const sequence<Policies, Key, Value>& text) {
  auto& state = detail::saved_access::state(text);
  detail::saving_archive archive(nullptr, 0);
  detail::saved_access::save_header<Policies, Key, Value>(archive, state);
  static_cast<void>(state.transfer(archive));
  return archive.finish({});
}

// No step may be open. Every policy of the sequence must be one that make_spec knows or that has a
// to_spec(). Throws error(unreadable) where the stream fails.
template <class Policies, row_codec Key, row_codec Value>
void save(const sequence<Policies, Key, Value>& text, std::ostream& out,
          const std::string& place = "saved sequence") {
  auto& state = detail::saved_access::state(text);
  detail::saving_archive archive(&out, saved_bytes(text));
  detail::saved_access::save_header<Policies, Key, Value>(archive, state);
  static_cast<void>(state.transfer(archive));
  archive.finish(place);
}

// A sequence as it was saved, with this manager's plan, or with the plan of its own that it was
// opened with. nullopt where the pages or the memory do not suffice. Throws error, naming `place`
// and the byte, on a file that is cut, altered, or of another cache; what the memory resource
// throws where it refuses the tables.
template <class Policies, row_codec Key, row_codec Value>
[[nodiscard]] std::optional<sequence<Policies, Key, Value>> try_restore(
    cache_manager<Policies, Key, Value>& cache, std::istream& in,
    const std::string& place = "saved sequence") {
  return detail::saved_access::restore(
      cache, in, std::vector(cache.plan().begin(), cache.plan().end()), place);
}
template <class Policies, row_codec Key, row_codec Value>
[[nodiscard]] std::optional<sequence<Policies, Key, Value>> try_restore(
    cache_manager<Policies, Key, Value>& cache, std::istream& in,
    const std::vector<typename Policies::variant>& per_head,
    const std::string& place = "saved sequence") {
  if (per_head.size() != cache.shape().heads())
    raise(error_code::shape_mismatch, place + ": per_head plan",
          std::to_string(per_head.size()) + " policies", std::to_string(cache.shape().heads()));
  return detail::saved_access::restore(cache, in, per_head, place);
}

HEADWISE_NAMESPACE_END
