// SPDX-License-Identifier: Apache-2.0

#include "record.hpp"

#include <filesystem>
#include <iostream>
#include <span>

#include "llama/session.hpp"
#include "llama/vocabulary_classes.hpp"
#include "numbers.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "prompts.hpp"

#include "headwise/io/map_writer.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

// Runs the prompts and writes their maps into one file.
class map_recorder {
 public:
  map_recorder(const llama_example::model& model, const headwise::map_info& info,
               const record_options& options)
      : model_(model), info_(info), options_(options) {}

  void record(const fs::path& path, std::span<const token_ids> prompts, progress& bar) {
    headwise::map_writer writer(path, info_, prompts, options_.type);
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      run(prompts[p], p, writer);
      bar.reach(++done_);
    }
    writer.finish();
  }

 private:
  void run(const token_ids& prompt, std::size_t number, headwise::map_writer& writer) const {
    const auto full =
        headwise::uniform_blueprint(model_.shape(), headwise::make_spec(headwise::global{}));
    llama_example::session_options session_options;
    session_options.capacity = static_cast<headwise::token_count>(prompt.size());
    llama_example::session<headwise::f32> session(model_, full, session_options);
    session.record_attention([&](const llama_example::attention_record& seen) {
      const std::size_t size = seen.queries * seen.keys;
      for (std::size_t head = 0; head < seen.query_heads; ++head)
        writer.write(number, seen.layer, static_cast<std::uint32_t>(head), seen.first_query,
                     {seen.weights.data() + head * size, seen.queries, seen.keys});
    });
    session.feed(prompt);
  }

  const llama_example::model& model_;
  const headwise::map_info& info_;
  const record_options& options_;
  std::uint64_t done_ = 0;
};

// A recording of another model or text in the same folder would be profiled along with this one.
void require_no_maps(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors")
      headwise::raise(headwise::error_code::duplicate, folder.string(),
                      "a folder with " + entry.path().filename().string(),
                      "one without recordings: remove them, or name another folder");
}

// Into a folder each prompt has a file of its own, so that sets of any size stay easy to handle.
void record_all(map_recorder& recorder, const fs::path& out, std::span<const token_ids> prompts,
                progress& bar) {
  if (out.extension() == ".safetensors") {
    recorder.record(out, prompts, bar);
    return;
  }
  try {
    fs::create_directories(out);
    require_no_maps(out);
  } catch (const fs::filesystem_error& e) {
    headwise::raise(headwise::error_code::unreadable, out.string(), e.code().message(),
                    "a folder, or a file whose name ends in .safetensors");
  }
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    std::string number = std::to_string(p);
    number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
    recorder.record(out / ("prompt_" + number + ".safetensors"), prompts.subspan(p, 1), bar);
  }
}

}  // namespace

void run_record(const record_options& options) {
  require_no_input("--out", options.out, {options.model, options.text});
  const llama_example::model model(options.model);
  const headwise::map_info info{model.shape(), model.fingerprint(),
                                llama_example::vocabulary_rules(model.tokens(), options.sinks)};
  const auto prompts = cut_pieces(model, options.text, {options.prompts, options.length});
  {
    progress bar("recording", prompts.size(), "prompts");
    map_recorder recorder(model, info, options);
    record_all(recorder, options.out, prompts, bar);
  }
  std::cout << "recorded " << with_commas(prompts.size()) << " prompts of "
            << with_commas(options.length) << " tokens, "
            << with_commas(std::uint64_t{model.shape().layers} * model.shape().query_heads)
            << " maps each, in " << options.out.string() << '\n';
}

}  // namespace headwise_tool
