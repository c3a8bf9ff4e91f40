// SPDX-License-Identifier: Apache-2.0

#include "measure.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "progress.hpp"

namespace headwise_tool {
namespace {

// The error of the first bad map is thrown, as by one thread that reads them in order: a thread
// that comes to one goes no further, nor do others behind it.
class team {
 public:
  team(const headwise::map_archive& archive, const headwise::measure_options& options,
       std::uint32_t threads)
      : bar_("profiling", archive.bytes_total() / mebibyte, "MiB of maps") {
    const headwise::model_shape shape = archive.shape();
    const std::uint32_t count = std::min(threads, shape.layers * shape.kv_heads);
    for (std::uint32_t i = 0; i < count; ++i) {
      parts_.emplace_back(shape, archive.rules(), options, headwise::head_share{i, count});
      archives_.push_back(archive.another());
    }
    failures_.resize(count);
  }

  [[nodiscard]] headwise::profiler<> run() {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < parts_.size(); ++i) threads.emplace_back([this, i] { work(i); });
      work(0);
    }
    const auto first = std::min_element(failures_.begin(), failures_.end(),
                                        [](const auto& a, const auto& b) { return a.at < b.at; });
    if (first->problem) std::rethrow_exception(first->problem);
    return headwise::profiler<>::join(parts_);
  }

 private:
  static constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  struct failure {
    std::uint64_t at = never;  // maps before the bad one
    std::exception_ptr problem = nullptr;
  };

  void work(std::size_t i) {
    headwise::map_archive& archive = archives_[i];
    try {
      std::uint64_t before = 0;
      while (const auto map = archive.next(parts_[i].share())) {
        if (archive.maps_before() > first_failure_) return;
        parts_[i].add(*map);
        const std::uint64_t mine = archive.bytes_done();
        bytes_done_ += mine - std::exchange(before, mine);
        if (i == 0) bar_.reach(bytes_done_ / mebibyte);
      }
    } catch (...) {
      const std::uint64_t at = archive.maps_before();
      failures_[i] = {at, std::current_exception()};
      std::uint64_t first = first_failure_;
      while (at < first && !first_failure_.compare_exchange_weak(first, at)) {
      }
    }
  }

  progress bar_;  // of the first thread
  std::vector<headwise::profiler<>> parts_;
  std::vector<headwise::map_archive> archives_;
  std::vector<failure> failures_;
  std::atomic<std::uint64_t> first_failure_ = never;
  std::atomic<std::uint64_t> bytes_done_ = 0;
};

}  // namespace

headwise::profiler<> measure(const headwise::map_archive& archive,
                             const headwise::measure_options& options, std::uint32_t threads) {
  return team(archive, options, threads).run();
}

}  // namespace headwise_tool
