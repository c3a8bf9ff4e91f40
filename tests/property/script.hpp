// SPDX-License-Identifier: Apache-2.0
//
// One random script: a manager with random policies, shape and memory, up to four sequences that
// append, attend, cancel, roll back, fork and close, each mirrored by a reference_cache and checked
// after every operation.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "property/view_checker.hpp"

#include "headwise/manager/saved_sequence.hpp"
#include "support/counting_resource.hpp"
#include "support/random_policy.hpp"

namespace headwise_tests {

template <class Key, class Value>
class script {
 public:
  script(random_source random, script_counts& counts)
      : random_(std::move(random)),
        counts_(counts),
        shape_(random_shape(random_)),
        config_(random_config(random_, &memory_)) {
    make_plan();
    manager_.emplace(shape_, plan_, config_);
    checker_.emplace(shape_, longest, random_, counts_);
    open();
  }

  void run(int operations) {
    for (int i = 0; i < operations && !random_.is_spent() && !testing::Test::HasFailure(); ++i) {
      const std::size_t which = random_.below(static_cast<std::uint32_t>(live_.size()));
      perform(which);
      check_all();
    }
    live_.clear();
    const headwise::manager_stats stats = manager_->stats();
    expect_equal(stats.sequences, 0, "sequences at the end");
    expect_equal(stats.pages_in_use, 0, "pages at the end");
    expect_equal(stats.held_bytes, stats.idle_bytes, "bytes held at the end");
    manager_.reset();
    expect_equal(memory_.bytes(), 0, "bytes after the manager");
  }

 private:
  using manager = headwise::cache_manager<test_policies, Key, Value>;
  using sequence = typename manager::sequence_type;
  using step = typename manager::step_type;
  using view = typename manager::view_type;

  static constexpr std::size_t longest = 260;
  static constexpr std::size_t most_sequences = 4;

  struct pair {
    sequence real;
    reference_cache expected;
  };

  // --- set-up ---

  void make_plan() {
    plan_.clear();
    rules_.clear();
    pools_.clear();
    for (std::size_t head = 0; head < shape_.heads(); ++head) {
      ruled_policy chosen = random_policy(random_);
      plan_.push_back(std::move(chosen.policy));
      rules_.push_back(std::move(chosen.rule));
      pools_.push_back(chosen.pool);
    }
  }
  void open() {
    if (!live_.empty() && random_.one_in(2)) make_plan();  // a plan of the sequence's own
    live_.push_back(std::make_unique<pair>(
        pair{manager_->open(plan_), reference_cache(rules_, pools_, config_.rollback_horizon)}));
  }

  // --- operations ---

  void perform(std::size_t which) {
    pair& p = *live_[which];
    const std::uint32_t kind = random_.below(22);
    if (kind >= 20)
      save_and_restore(p);
    else if (kind < 13)
      append(p);
    else if (kind < 16)
      roll_back(p);
    else if (kind < 18 && live_.size() < most_sequences)
      fork(p);
    else if (kind == 18 && live_.size() < most_sequences)
      open();
    else if (live_.size() > 1 || p.real.length() + 64 > longest)
      close(which);
  }

  void close(std::size_t which) {
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
    if (live_.empty()) open();
  }

  void fork(pair& p) {
    const bool starved = random_.one_in(4);
    if (starved) memory_.refuse_after(random_.below(8));
    const std::size_t held = memory_.bytes();
    try {
      live_.push_back(std::make_unique<pair>(pair{p.real.fork(), p.expected}));
      ++counts_.forks;
    } catch (const std::bad_alloc&) {
      expect(starved, "a fork is refused for want of memory only");
      expect_equal(memory_.bytes(), held, "bytes after a refused fork");
      ++counts_.refusals;
    }
    memory_.allow_all();
  }

  // The restored sequence takes the place of the one that was saved. Starved of memory, or given
  // bytes that are not those of the file, nothing happens.
  void save_and_restore(pair& p) {
    std::ostringstream out;
    headwise::save(p.real, out);
    std::string file = std::move(out).str();
    expect_equal(headwise::saved_bytes(p.real), file.size(), "bytes of the file");
    const bool altered = random_.one_in(3);
    const bool starved = random_.one_in(4);
    if (altered) damage(file);
    if (starved) memory_.refuse_after(random_.below(8));
    const headwise::manager_stats before = manager_->stats();
    std::istringstream in(file);
    std::optional<sequence> restored;
    bool refused = false;
    try {
      restored = headwise::try_restore(*manager_, in, plan_of(p));
    } catch (const headwise::error& e) {
      refused = true;
      if (!altered) ADD_FAILURE() << e.what();
    } catch (const std::bad_alloc&) {
    }
    memory_.allow_all();
    if (restored) {
      expect(!altered, "an altered file is refused");
      p.real = std::move(*restored);
      ++counts_.saves;
      return;
    }
    expect(refused || starved || before.pages_available < before.pages_in_use + 1,
           "a file is put back where there is memory");
    expect_equal(manager_->stats().held_bytes, before.held_bytes, "bytes after a refused file");
    ++counts_.refusals;
  }
  [[nodiscard]] static std::vector<test_policy> plan_of(const pair& p) {
    return {p.real.plan().begin(), p.real.plan().end()};
  }
  void damage(std::string& file) {
    const std::size_t at = random_.below(static_cast<std::uint32_t>(file.size()));
    if (random_.one_in(2))
      file.resize(at);
    else
      file[at] = static_cast<char>(file[at] ^ (1 << random_.below(8)));
  }

  void roll_back(pair& p) {
    token_count n = random_.one_in(4) ? random_.between(0, p.real.length() + 2)
                                      : random_.between(0, config_.rollback_horizon + 2);
    if (random_.one_in(16)) n = p.real.length();
    if (n > p.real.length()) {
      expect(!p.real.try_rollback(n), "a rollback beyond the start is refused");
      return;
    }
    const token_count length = p.real.length() - n;
    const auto verdict = p.expected.judge_rollback(length);
    const bool blocked = p.real.rollback_blocker(n).has_value();
    const bool done = p.real.try_rollback(n);
    expect(done == (n == 0 || !blocked), "try_rollback and rollback_blocker agree");
    if (done && n > 0) {
      expect(verdict != reference_cache::verdict::must_refuse, "the rollback had to be refused");
      p.expected.rollback(length);
      ++counts_.rollbacks;
    } else if (n > 0) {
      expect(verdict != reference_cache::verdict::must_succeed, "the rollback was possible");
      ++counts_.blocked;
    }
  }

  void append(pair& p) {
    const std::uint32_t room = static_cast<std::uint32_t>(longest) - p.real.length();
    std::uint32_t count = random_.one_in(2) ? 1 : random_.between(1, random_.one_in(2) ? 8 : 64);
    if (random_.one_in(20)) count = 0;
    count = std::min(count, room);
    const auto scope = random_.one_in(4) ? headwise::attend_scope::last_query
                                         : headwise::attend_scope::every_query;
    const std::vector<token> tokens = random_tokens(random_, p.real.length(), count);
    const std::size_t needed = p.real.pages_needed(tokens, scope);
    const headwise::manager_stats before = manager_->stats();
    const bool starved = random_.one_in(8);
    if (starved) memory_.refuse_after(random_.below(6));
    std::optional<step> opened = p.real.try_append(tokens, scope);
    memory_.allow_all();
    if (!opened) {
      expect(starved || needed > before.pages_available,
             "a step is refused for want of memory only");
      expect_equal(manager_->stats().pages_in_use, before.pages_in_use,
                   "pages after a refused step");
      ++counts_.refusals;
      return;
    }
    expect_equal(manager_->stats().pages_in_use, before.pages_in_use + needed, "pages in a step");
    p.expected.begin(tokens, scope);
    const bool cancelled = random_.one_in(6);
    write_heads(p, *opened, cancelled, scope == headwise::attend_scope::last_query && count > 0);
    if (cancelled) {
      opened.reset();
      p.expected.cancel();
      ++counts_.cancels;
      expect_equal(manager_->stats().pages_in_use, before.pages_in_use,
                   "pages after a cancelled step");
    } else {
      std::move(*opened).commit();
      p.expected.commit();
    }
  }

  // Writes the heads in random order, not all where the step is going to be cancelled, and checks
  // each as soon as it is written.
  void write_heads(pair& p, step& opened, bool cancelled, bool prompt) {
    std::vector<std::size_t> order(shape_.heads());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      std::swap(order[i], order[random_.below(static_cast<std::uint32_t>(i) + 1)]);
    }
    if (cancelled) order.resize(random_.below(static_cast<std::uint32_t>(order.size()) + 1));
    const std::size_t count = opened.tokens().size();
    const position newest = p.real.length() + static_cast<token_count>(count);
    for (const std::size_t head : order) {
      if (prompt && p.expected.ranks(head)) show_prompt(p, opened, head, newest);
      write_head(p, opened, head, count);
      const position end = cancelled && random_.one_in(2) ? p.real.length() : newest;
      const position first = opened.head(id(head)).first_query();
      expect_equal(first, p.expected.first_query(head), "first_query of a step");
      for (position q = first; q < end; ++q) {
        const view seen = opened.head(id(head));
        if (seen.awaits_attention(q))
          check_and_observe(p, head, seen, q, prompt && q + 1 == newest);
        else
          check(p, head, seen, q, true);
      }
    }
  }

  // Sums of eighths, so that it makes no difference in which order they are added.
  [[nodiscard]] float random_weight() {
    if (random_.one_in(2'000)) return std::numeric_limits<float>::quiet_NaN();
    return random_.one_in(3) ? 0.0F : static_cast<float>(random_.below(64)) / 8.0F;
  }
  void show_prompt(pair& p, step& opened, std::size_t head, position length) {
    std::vector<float> sums(length);
    for (float& sum : sums) sum = random_weight();
    opened.observe_prompt(id(head), sums);
    p.expected.observe_prompt(head, sums);
    ++counts_.prompts;
  }
  // By weights of our own, or by attend: then with its probabilities, whose output is checked. The
  // newest query of a prompt may be left out.
  void check_and_observe(pair& p, std::size_t head, const view& seen, position q, bool optional) {
    const bool ours = random_.one_in(2);
    check(p, head, seen, q, !ours && !(optional && random_.one_in(2)));
    if (ours && !(optional && random_.one_in(2))) {
      const std::size_t heads = random_.one_in(2) ? shape_.group_size() : 1;
      std::vector<float> weights(heads * checker_->order().size());
      for (float& weight : weights) weight = random_weight();
      seen.observe(q, {weights.data(), heads, checker_->order().size()});
      tell(p, head, q, {weights.data(), heads, checker_->order().size()});
    } else if (!seen.awaits_attention(q)) {
      tell(p, head, q, checker_->weights());
    } else {
      expect(optional, "attend shows a pool the attention");
    }
  }
  // weights: [heads, rows seen] in the order of the slabs, as check() has left it in the checker.
  void tell(pair& p, std::size_t head, position q, headwise::rows<const float> weights) {
    std::vector<std::pair<position, float>> sums;
    for (std::size_t i = 0; i < checker_->order().size(); ++i) {
      float sum = 0.0F;
      for (std::size_t g = 0; g < weights.count; ++g) sum += weights[g][i];
      sums.emplace_back(checker_->order()[i], sum);
    }
    std::sort(sums.begin(), sums.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<float> by_position;
    for (const auto& sum : sums) by_position.push_back(sum.second);
    p.expected.observe(head, q, by_position);
  }

  void write_head(pair& p, step& opened, std::size_t head, std::size_t count) {
    const std::size_t d = shape_.head_dim;
    const std::vector<float> keys = random_.numbers(count * d);
    const std::vector<float> values = random_.numbers(count * d);
    const std::size_t key_bytes = Key::row_bytes(d);
    const std::size_t value_bytes = Value::row_bytes(d);
    std::vector<std::byte> encoded_keys, encoded_values;
    for (std::size_t i = 0; i < count; ++i) {
      auto payload = std::make_shared<reference_payload>();
      payload->key_bytes.resize(key_bytes);
      payload->value_bytes.resize(value_bytes);
      payload->key.resize(d);
      payload->value.resize(d);
      Key::encode({keys.data() + i * d, d}, payload->key_bytes.data());
      Value::encode({values.data() + i * d, d}, payload->value_bytes.data());
      Key::decode(payload->key_bytes.data(), payload->key);
      Value::decode(payload->value_bytes.data(), payload->value);
      encoded_keys.insert(encoded_keys.end(), payload->key_bytes.begin(), payload->key_bytes.end());
      encoded_values.insert(encoded_values.end(), payload->value_bytes.begin(),
                            payload->value_bytes.end());
      p.expected.write(head, i, std::move(payload));
    }
    if (random_.one_in(2))
      opened.write(id(head), {keys.data(), count, d}, {values.data(), count, d});
    else
      opened.write_encoded(id(head), {encoded_keys.data(), count, key_bytes},
                           {encoded_values.data(), count, value_bytes});
  }

  // --- checks ---

  [[nodiscard]] headwise::head_id id(std::size_t head) const {
    return {static_cast<std::uint32_t>(head) / shape_.kv_heads,
            static_cast<std::uint32_t>(head) % shape_.kv_heads};
  }

  void check_all() {
    std::size_t held = 0;
    std::size_t pages = 0;
    for (const auto& p : live_) {
      const headwise::cache_stats stats = p->real.stats();
      held += stats.held_bytes();
      pages += pages_of(stats);
      check_stats(*p, stats);
      for (std::size_t head = 0; head < shape_.heads(); ++head) {
        const view seen = p->real.head(id(head));
        expect_equal(seen.first_query(), p->expected.first_query(head), "first_query");
        expect_equal(seen.resident_rows(), p->expected.resident(head), "resident_rows of a head");
        for (position q = seen.first_query(); q < p->real.length(); ++q)
          check(*p, head, seen, q, q + 1 == p->real.length());
      }
    }
    const headwise::manager_stats stats = manager_->stats();
    const std::size_t shared = pages - stats.pages_in_use;
    expect_equal(stats.sequences, live_.size(), "sequences");
    expect_equal(stats.held_bytes, memory_.bytes(), "bytes held by the manager");
    expect_equal(held - shared * stats.page_bytes + stats.idle_bytes, memory_.bytes(),
                 "bytes of the sequences, shared pages once, and of idle pages");
  }

  [[nodiscard]] std::size_t row_bytes() const {
    return Key::row_bytes(shape_.head_dim) + Value::row_bytes(shape_.head_dim);
  }
  [[nodiscard]] std::size_t pages_of(const headwise::cache_stats& stats) const {
    return (stats.payload_bytes + stats.reserved_bytes) / (config_.page_tokens * row_bytes());
  }
  void check_stats(const pair& p, const headwise::cache_stats& stats) const {
    expect_equal(stats.length, p.expected.length(), "length");
    expect_equal(stats.resident_rows, p.expected.resident(), "resident_rows");
    expect_equal(stats.payload_bytes, stats.resident_rows * row_bytes(), "payload_bytes");
    expect_equal(stats.full_rows, shape_.heads() * stats.length, "full_rows");
    expect_equal(stats.full_bytes, stats.full_rows * row_bytes(), "full_bytes");
  }

  void check(const pair& p, std::size_t head, const view& seen, position q, bool attend_too) {
    checker_->check(p.expected, head, seen, q, attend_too);
  }

  random_source random_;
  script_counts& counts_;
  counting_resource memory_;
  headwise::model_shape shape_;
  headwise::cache_config config_;
  std::vector<test_policy> plan_;
  std::vector<lifetime_rule> rules_;
  std::vector<token_count> pools_;
  std::optional<manager> manager_;
  std::optional<view_checker<Key, Value>> checker_;
  std::vector<std::unique_ptr<pair>> live_;
};

}  // namespace headwise_tests
