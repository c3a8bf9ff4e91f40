// SPDX-License-Identifier: Apache-2.0
//
// team: threads that are kept and do shares of the same work, as an engine has them. The caller is
// worker 0, so that a team of one is a plain call.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace headwise_bench {

class team {
 public:
  explicit team(unsigned workers) {
    for (unsigned worker = 1; worker < workers; ++worker)
      threads_.emplace_back([this, worker] { serve(worker); });
  }
  team(const team&) = delete;
  team& operator=(const team&) = delete;
  ~team() {
    share_ = nullptr;
    start();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] unsigned workers() const { return static_cast<unsigned>(threads_.size()) + 1; }

  // fn(worker) on every worker; returns when all are done.
  template <class Fn>
  void run(const Fn& fn) {
    share_ = [](const void* work, unsigned worker) { (*static_cast<const Fn*>(work))(worker); };
    work_ = &fn;
    busy_.store(static_cast<unsigned>(threads_.size()), std::memory_order_relaxed);
    start();
    fn(0U);
    for (unsigned busy = busy_.load(); busy != 0; busy = busy_.load()) busy_.wait(busy);
  }

 private:
  void start() {
    round_.fetch_add(1);
    round_.notify_all();
  }
  void serve(unsigned worker) {
    for (unsigned round = 0;; ++round) {
      round_.wait(round);
      if (share_ == nullptr) return;
      share_(work_, worker);
      if (busy_.fetch_sub(1) == 1) busy_.notify_one();
    }
  }

  void (*share_)(const void*, unsigned) = nullptr;
  const void* work_ = nullptr;
  std::atomic<unsigned> round_{0}, busy_{0};
  std::vector<std::thread> threads_;
};

}  // namespace headwise_bench
