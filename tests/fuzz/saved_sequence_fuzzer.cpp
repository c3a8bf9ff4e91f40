// SPDX-License-Identifier: Apache-2.0
//
// The input as a saved sequence: as it stands, and with its size and checksum put right, since a
// fuzzer does not guess them. What is restored is used: attended, rolled back, appended to, forked,
// saved again.
#include <optional>
#include <sstream>

#include "fuzz/saved_cache.hpp"
#include "fuzz/target.hpp"

namespace headwise_tests {
namespace {

using headwise::attend_scope;
using headwise::position;

std::optional<saved_text> restore(saved_manager& cache, const std::string& file) {
  const headwise::manager_stats before = cache.stats();
  std::optional<saved_text> text;
  accepts([&] {
    std::istringstream in(file);
    text = headwise::try_restore(cache, in);
  });
  const headwise::manager_stats after = cache.stats();
  require(text || (after.held_bytes == before.held_bytes && after.sequences == before.sequences &&
                   after.pages_in_use == before.pages_in_use),
          "a file that is refused leaves nothing behind");
  return text;
}

// `file` with the numbers that say that it is whole: bytes 16 to 24, and the last eight.
std::string repaired(std::string file) {
  constexpr std::size_t size_at = 16, checksum_bytes = 8;
  if (file.size() < size_at + 2 * checksum_bytes) return file;
  const std::uint64_t size = file.size();
  std::memcpy(file.data() + size_at, &size, sizeof size);
  headwise::detail::checksum sum;
  sum.add(file.data(), file.size() - checksum_bytes);
  const std::uint64_t value = sum.value();
  std::memcpy(file.data() + file.size() - checksum_bytes, &value, sizeof value);
  return file;
}

void look(const saved_text& text, random_source& random) {
  for (std::uint32_t head = 0; head < saved_shape.kv_heads; ++head) {
    const auto view = text.head(saved_head(head));
    for (position query = view.first_query(); query <= view.last_query(); ++query) {
      std::vector<position> seen;
      view.for_each_slab(query, [&](const headwise::slab& s) {
        const std::size_t d = view.head_dim();
        touch({s.keys, s.count * headwise::f16::row_bytes(d)});
        touch({s.values, s.count * headwise::f32::row_bytes(d)});
        seen.insert(seen.end(), s.positions, s.positions + s.count);
      });
      require(seen.size() <= view.resident_rows(), "no query sees more rows than there are");
      std::sort(seen.begin(), seen.end());
      require(seen.empty() || seen.back() <= std::min(query, text.length() - 1),
              "rows of the past");
      require(std::adjacent_find(seen.begin(), seen.end()) == seen.end(), "each row once");
      if (query < text.length()) attend_one(view, query, random);
    }
    view.for_each_score(
        [&](position pos, float) { require(pos < text.length(), "a score is that of a token"); });
  }
}

void roll_back(saved_text& text, random_source& random) {
  for (headwise::token_count n = 1; n <= saved_horizon + 2 && n <= text.length(); ++n) {
    saved_text fork = text.fork();
    const bool possible = !fork.rollback_blocker(n);
    require(fork.try_rollback(n) == possible, "try_rollback and rollback_blocker agree");
    look(fork, random);
    grow(fork, 2, attend_scope::every_query, random);
  }
}

void use(saved_manager& cache, saved_text& text) {
  random_source random(1);
  look(text, random);
  const std::string file = saved(text);
  require(file.size() == headwise::saved_bytes(text), "saved_bytes is what save writes");
  if (const auto again = restore(cache, file))
    require(saved(*again) == file, "save(restore(x)) == x");
  roll_back(text, random);
  grow(text, 1, attend_scope::every_query, random);
  grow(text, 4, attend_scope::every_query, random);
  constexpr headwise::token_count longest_prompt = 1000;  // its column sums are as many
  if (text.length() < longest_prompt) grow(text, 7, attend_scope::last_query, random);
  look(text, random);
  require(text.try_rollback(text.length()), "a sequence can always be emptied");
  grow(text, 3, attend_scope::every_query, random);
}

}  // namespace
}  // namespace headwise_tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headwise_tests;
  const std::string file(data, data + size);
  for (const std::size_t pages : {std::size_t{12}, headwise::unlimited_pages}) {
    saved_manager cache = make_saved_cache(pages);
    for (const std::string& bytes : {file, repaired(file)})
      if (auto text = restore(cache, bytes)) use(cache, *text);
    require(cache.stats().pages_in_use == 0, "no page is left behind");
  }
  return 0;
}
