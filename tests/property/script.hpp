// SPDX-License-Identifier: Apache-2.0
//
// One random script: a manager with random policies, shape and memory, up to four sequences that
// append, attend, cancel, roll back, fork, refill each other, go to a file and back and close, each
// mirrored by a reference_cache and checked after every operation.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "property/step_writer.hpp"

#include "headwise/manager/saved_sequence.hpp"
#include "support/counting_resource.hpp"
#include "support/random_policy.hpp"
#include "support/saved.hpp"

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
    manager_.emplace(shape_, policies(), config_);
    checker_.emplace(shape_, longest, random_, counts_);
    writer_.emplace(shape_, random_, counts_, *checker_);
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
  using pair = mirrored<Key, Value>;

  static constexpr std::uint32_t longest = 260;
  static constexpr std::size_t most_sequences = 4;

  // --- set-up ---

  void make_plan() {
    plan_.clear();
    for (std::size_t head = 0; head < shape_.heads(); ++head)
      plan_.push_back(random_policy(random_, true));
  }
  [[nodiscard]] std::vector<test_policy> policies() const {
    std::vector<test_policy> result;
    for (const ruled_policy& head : plan_) result.push_back(head.policy);
    return result;
  }
  void open() {
    if (!live_.empty() && random_.one_in(2)) make_plan();  // a plan of the sequence's own
    const token_count expected_length =
        random_.one_in(2) ? headwise::max_length : random_.between(1, longest);
    std::vector<lifetime_rule> rules;
    std::vector<token_count> pools;
    for (const ruled_policy& head : plan_) {
      rules.push_back(head.rule);
      pools.push_back(head.pool_rows(expected_length));
    }
    live_.push_back(std::make_unique<pair>(
        pair{manager_->open(policies(), expected_length),
             reference_cache(std::move(rules), pools, config_.rollback_horizon)}));
  }

  // --- operations ---

  void perform(std::size_t which) {
    pair& p = *live_[which];
    const std::uint32_t kind = random_.below(24);
    if (kind >= 22 && live_.size() < most_sequences)
      refill(p);
    else if (kind >= 20)
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
    const std::size_t refusals = maybe_starve(4, 8);
    const std::size_t held = memory_.bytes();
    try {
      live_.push_back(std::make_unique<pair>(pair{p.real.fork(), p.expected}));
      ++counts_.forks;
    } catch (const std::bad_alloc&) {
      expect(memory_.refusals() > refusals, "a fork is refused for want of memory only");
      expect_equal(memory_.bytes(), held, "bytes after a refused fork");
      ++counts_.refusals;
    }
    memory_.allow_all();
  }

  // The restored sequence takes the place of the one that was saved. Starved of memory, or given
  // bytes that are not those of the file, nothing happens.
  void save_and_restore(pair& p) {
    std::string file = saved(p.real);
    expect_equal(headwise::saved_bytes(p.real), file.size(), "bytes of the file");
    const bool altered = random_.one_in(3);
    if (altered) damage(file);
    const std::size_t pages = pages_of(p.real.stats());
    const std::size_t refusals = maybe_starve(4, 8);
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
      if (pages_are_alike())
        expect_equal(manager_->stats().pages_in_use, before.pages_in_use + pages,
                     "pages with a restored sequence beside its original");
      expect_equal(restored->stats().reserved_bytes, p.real.stats().reserved_bytes,
                   "row slots without rows of a restored sequence");
      p.real = std::move(*restored);
      ++counts_.saves;
      return;
    }
    // An altered file may claim any number of rows, and then the pages do not suffice.
    const bool too_large = altered && config_.pages != headwise::unlimited_pages;
    expect(refused || memory_.refusals() > refusals || pages > before.pages_available || too_large,
           "a file is put back where there is memory");
    expect_equal(manager_->stats().held_bytes, before.held_bytes, "bytes after a refused file");
    ++counts_.refusals;
  }
  [[nodiscard]] static std::vector<test_policy> plan_of(const pair& p) {
    return {p.real.plan().begin(), p.real.plan().end()};
  }
  // One time in `n` allows `below` calls of the memory resource at most. Returns its refusals so
  // far.
  [[nodiscard]] std::size_t maybe_starve(std::uint32_t n, std::uint32_t below) {
    if (random_.one_in(n)) memory_.refuse_after(random_.below(below));
    return memory_.refusals();
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
      expect(!p.real.try_truncate(n), "a truncation to more than the length is refused");
      return;
    }
    const token_count length = p.real.length() - n;
    const auto verdict = p.expected.judge_rollback(length);
    const bool blocked = p.real.rollback_blocker(n).has_value();
    const bool done = random_.one_in(2) ? p.real.try_rollback(n) : p.real.try_truncate(length);
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
    const std::uint32_t room = longest - p.real.length();
    std::uint32_t count = random_.one_in(2) ? 1 : random_.between(1, random_.one_in(2) ? 8 : 64);
    if (random_.one_in(20)) count = 0;
    count = std::min(count, room);
    const auto scope = random_.one_in(4) ? headwise::attend_scope::last_query
                                         : headwise::attend_scope::every_query;
    take_step(p, random_tokens(random_, p.real.length(), count), scope,
              [&](step& opened, std::size_t head) { writer_->write_head(p, opened, head); });
  }
  // A sequence whose plan becomes known behind its prompt takes over the rows of `source`.
  void refill(const pair& source) {
    open();
    pair& p = *live_.back();
    const std::span<const token> tokens = source.expected.tokens();
    take_step(
        p, {tokens.begin(), tokens.end()}, headwise::attend_scope::last_query,
        [&](step& opened, std::size_t head) { writer_->refill_head(p, opened, head, source); });
  }

  // put(step, head) writes one head.
  template <class Put>
  void take_step(pair& p, const std::vector<token>& tokens, headwise::attend_scope scope,
                 Put&& put) {
    const std::size_t needed = p.real.pages_needed(tokens, scope);
    const headwise::manager_stats before = manager_->stats();
    const std::size_t refusals = maybe_starve(8, 6);
    std::optional<step> opened = p.real.try_append(tokens, scope);
    memory_.allow_all();
    if (!opened) {
      expect(memory_.refusals() > refusals || needed > before.pages_available,
             "a step is refused for want of memory only");
      expect_equal(manager_->stats().pages_in_use, before.pages_in_use,
                   "pages after a refused step");
      ++counts_.refusals;
      return;
    }
    expect_equal(manager_->stats().pages_in_use, before.pages_in_use + needed, "pages in a step");
    p.expected.begin(tokens, scope);
    const bool cancelled = random_.one_in(6);
    const bool prompt = scope == headwise::attend_scope::last_query && !tokens.empty();
    writer_->write_heads(p, *opened, cancelled, prompt,
                         [&](std::size_t head) { put(*opened, head); });
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

  // --- checks ---

  void check_all() {
    std::size_t held = 0;
    std::size_t pages = 0;
    for (const auto& p : live_) {
      const headwise::cache_stats stats = p->real.stats();
      held += stats.held_bytes();
      pages += pages_of(stats);
      check_stats(*p, stats);
      for (std::size_t head = 0; head < shape_.heads(); ++head) {
        const view seen = p->real.head(head_at(shape_, head));
        expect_equal(seen.first_query(), p->expected.first_query(head), "first_query");
        expect_equal(seen.resident_rows(), p->expected.resident(head), "resident_rows of a head");
        expect_equal(seen.last_query(), p->real.length(), "last_query between steps");
        for (position q = seen.first_query(); q <= p->real.length(); ++q)
          checker_->check(p->expected, head, seen, q, q + 1 == p->real.length());
      }
    }
    const headwise::manager_stats stats = manager_->stats();
    expect_equal(stats.sequences, live_.size(), "sequences");
    expect_equal(stats.held_bytes, memory_.bytes(), "bytes held by the manager");
    if (live_.size() == 1)
      expect_equal(held + stats.idle_bytes, memory_.bytes(),
                   "bytes of the only sequence and of idle pages");
    else if (pages_are_alike())
      expect_equal(held - (pages - stats.pages_in_use) * stats.page_bytes + stats.idle_bytes,
                   memory_.bytes(), "bytes of the sequences, shared pages once, and of idle pages");
  }

  [[nodiscard]] bool pages_are_alike() const {
    return config_.pages != headwise::unlimited_pages || config_.reserved_pages > 0;
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

  random_source random_;
  script_counts& counts_;
  counting_resource memory_;
  headwise::model_shape shape_;
  headwise::cache_config config_;
  std::vector<ruled_policy> plan_;
  std::optional<manager> manager_;
  std::optional<view_checker<Key, Value>> checker_;
  std::optional<step_writer<Key, Value>> writer_;
  std::vector<std::unique_ptr<pair>> live_;
};

}  // namespace headwise_tests
