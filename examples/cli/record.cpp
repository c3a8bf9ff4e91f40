// SPDX-License-Identifier: Apache-2.0

#include "record.hpp"

#include <filesystem>
#include <functional>
#include <iostream>
#include <span>

#include "numbers.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "prompts.hpp"

#include "headwise/io/replacing_file.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

// A recording of another model or text in the same folder would be profiled along with this one.
void require_no_maps(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors")
      headwise::raise(headwise::error_code::duplicate, folder.string(),
                      "a folder with " + entry.path().filename().string(),
                      "one without recordings: remove them, or name another folder");
}

bool is_file(const fs::path& out) {
  return out.extension() == ".safetensors";
}

template <class Act>
void on_folder(const fs::path& out, Act&& act) {
  try {
    act();
  } catch (const fs::filesystem_error& e) {
    headwise::raise(headwise::error_code::unreadable, out.string(), e.code().message(),
                    "a folder, or a file whose name ends in .safetensors");
  }
}

// Before the model is read. A folder is made only once there is something to write into it.
void require_room(const record_options& options) {
  const std::vector<fs::path> inputs{options.model, options.text};
  if (is_file(options.out)) return require_output("--out", options.out, inputs);
  require_no_input("--out", options.out, inputs);
  on_folder(options.out, [&] {
    if (fs::exists(options.out)) require_no_maps(options.out);
    fs::path first = fs::absolute(options.out) / "prompt_0000.safetensors";
    while (!fs::exists(first.parent_path())) first = first.parent_path();
    static_cast<void>(headwise::replacing_file(first));
  });
}

// Into a folder each prompt has a file of its own, so that sets of any size stay easy to handle.
void record_all(attention_recorder& recorder, const fs::path& out,
                std::span<const token_ids> prompts, const std::function<void()>& done) {
  if (is_file(out)) return recorder.record(out, prompts, done);
  on_folder(out, [&] { fs::create_directories(out); });
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    std::string number = std::to_string(p);
    number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
    recorder.record(out / ("prompt_" + number + ".safetensors"), prompts.subspan(p, 1), done);
  }
}

}  // namespace

void run_record(const record_options& options) {
  require_room(options);
  const auto model = load_engine(options.engine, options.model);
  const auto prompts =
      cut_pieces(*model, options.text, {options.prompts, options.length, options.look_back});
  {
    progress bar("recording", prompts.size(), "prompts");
    std::uint64_t recorded = 0;
    const std::size_t queries = options.look_back == 0 ? options.length : options.look_back;
    const auto recorder =
        model->make_recorder({static_cast<headwise::token_count>(options.length), options.sinks,
                              options.type, static_cast<headwise::token_count>(queries)});
    record_all(*recorder, options.out, prompts, [&] { bar.reach(++recorded); });
  }
  const headwise::model_shape& shape = model->facts().shape;
  std::cout << "recorded " << counted(prompts.size(), "prompt") << " of "
            << counted(options.length, "token") << ", "
            << counted(std::uint64_t{shape.layers} * shape.query_heads, "map") << " each, in "
            << options.out.string() << '\n';
}

}  // namespace headwise_tool
