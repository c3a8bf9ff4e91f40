// SPDX-License-Identifier: Apache-2.0
//
// kept: the library calls a benchmark several times, to find its number of iterations and for each
// repetition, and may call those of a case by turns. So what takes longer to set up than to measure
// is made once, and all that one case uses lives until a benchmark of another case asks for its
// own.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace headwise_bench {
namespace detail {

struct shelf {
  std::string case_name;
  std::map<std::string, std::shared_ptr<void>> fixtures;
};
[[nodiscard]] inline shelf& the_shelf() {
  static shelf only;
  return only;
}

}  // namespace detail

// The fixture `name` of a case, made of `args` when it is first asked for.
template <class Fixture, class... Args>
[[nodiscard]] Fixture& kept(const std::string& case_name, const std::string& name,
                            const Args&... args) {
  detail::shelf& shelf = detail::the_shelf();
  if (shelf.case_name != case_name) {
    shelf.fixtures.clear();  // the memory of the old case first
    shelf.case_name = case_name;
  }
  std::shared_ptr<void>& found = shelf.fixtures[name];
  if (found == nullptr) {
    const auto made = std::make_shared<Fixture>(args...);  // may ask for others of its case
    shelf.fixtures[name] = made;
    return *made;
  }
  return *static_cast<Fixture*>(found.get());
}

}  // namespace headwise_bench
