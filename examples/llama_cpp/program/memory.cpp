// SPDX-License-Identifier: Apache-2.0
//
// Each contestant runs in a process of its own, which is forked before any thread or model exists:
// what one left behind would count for the next.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "commands.hpp"

#include "headwise/core/error.hpp"

namespace headwise_llama_cpp {
namespace {

constexpr std::size_t single_tokens = 32;  // behind the prompt

// In KiB.
struct footprint {
  std::size_t loaded = 0;    // resident with the model read and nothing else
  std::size_t resident = 0;  // at the end
  std::size_t peak = 0;
  std::size_t computed = 0;  // of keys and values, at most
  char name[32] = {};
};

// A field of what the system says of the process, in KiB.
std::size_t status_of_process(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == field + ":" && status >> word) return static_cast<std::size_t>(std::stoul(word));
  headwise::raise(headwise::error_code::unsupported, "/proc/self/status", "no " + field,
                  "a system that counts a process's memory");
}

footprint measure(contestant_kind kind, const contest_options& options, std::size_t length) {
  footprint result;
  const model_handle model = load_model(options);
  result.loaded = status_of_process("VmRSS");
  const int threads = *std::max_element(options.threads.begin(), options.threads.end());
  contestant c = make_contestant(kind, *model, options, length, threads);
  id_source ids(*model);
  const std::size_t singles = std::min(single_tokens, length - 1);
  c.feed(ids.next(length - singles));
  for (std::size_t i = 0; i < singles; ++i) c.feed(ids.next(1));
  result.resident = status_of_process("VmRSS");
  result.peak = status_of_process("VmHWM");
  result.computed = c.peak_bytes() / 1024;
  c.name.copy(result.name, sizeof result.name - 1);
  return result;
}

// Or it would go on by itself where somebody stops this program. parent: that forked it.
void end_with(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(EXIT_FAILURE);
}

[[noreturn]] void run_child(int pipe, contestant_kind kind, const contest_options& options,
                            std::size_t length) {
  try {
    const footprint result = measure(kind, options, length);
    if (write(pipe, &result, sizeof result) == ssize_t{sizeof result}) _exit(EXIT_SUCCESS);
  } catch (const std::exception& e) {
    complain(e);
  }
  _exit(EXIT_FAILURE);
}

footprint measure_alone(contestant_kind kind, const contest_options& options, std::size_t length) {
  int ends[2];
  const bool has_pipe = pipe(ends) == 0;
  const pid_t parent = getpid();
  const pid_t child = has_pipe ? fork() : -1;
  if (child < 0)
    headwise::raise(headwise::error_code::unsupported, "memory", "no process or pipe to be had",
                    "one for each contestant");
  if (child == 0) {
    end_with(parent);
    run_child(ends[1], kind, options, length);
  }
  close(ends[1]);
  footprint result;
  const bool whole = read(ends[0], &result, sizeof result) == ssize_t{sizeof result};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!whole)
    headwise::raise(headwise::error_code::unsupported, "memory", "a contestant that broke off",
                    "one that runs; what it said stands above");
  return result;
}

double mebibytes(double kibibytes) {
  return kibibytes / 1024.0;
}

// How much less than `stock`.
double saved(std::size_t stock, std::size_t here) {
  return mebibytes(static_cast<double>(stock) - static_cast<double>(here));
}

}  // namespace

void run_memory(const contest_options& options) {
  std::printf(
      "| tokens | engine | resident MiB | at most | with the model alone | keys and values | less "
      "resident than the first | computed |\n|---|---|---|---|---|---|---|---|\n");
  std::fflush(stdout);  // or a child has it to print as well
  for (const std::size_t length : options.lengths) {
    footprint first;
    for (const contestant_kind kind : contestant_kinds) {
      const footprint f = measure_alone(kind, options, length);
      if (kind == contestant_kinds[0]) first = f;
      std::printf("| %zu | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", length, f.name,
                  mebibytes(static_cast<double>(f.resident)),
                  mebibytes(static_cast<double>(f.peak)), mebibytes(static_cast<double>(f.loaded)),
                  mebibytes(static_cast<double>(f.computed)), saved(first.resident, f.resident),
                  saved(first.computed, f.computed));
      std::fflush(stdout);
    }
  }
}

}  // namespace headwise_llama_cpp
