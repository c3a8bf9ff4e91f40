// SPDX-License-Identifier: Apache-2.0
//
// Graphs that the takeover cannot compute, run again and again: llama.cpp uses a graph twice, with
// whatever was made of its nodes.
#include "llama_cpp/cached_rows.hpp"
#include "llama_cpp/hooked_context.hpp"
#include "random_models.hpp"

#include "headwise/codec/f32.hpp"

namespace headwise_tests {
namespace {

TEST(llama_cpp_graph_hook, an_obstacle_stays_one) {
  const auto model = make_small_model("bloom", {{"attention.head_count_kv", 4U}});
  for (const auto form : {hlc::graph_form::op_swap, hlc::graph_form::overwrite}) {
    llama_context_params params = llama_context_default_params();
    params.n_threads = params.n_threads_batch = 1;
    hlc::hooked_context context(*model, params, 32, 1);
    hlc::cached_rows<headwise::f32, headwise::f32> rows(all_global(*model), {},
                                                        {1, 32, 32, 1, nullptr});
    context.hook().use(form, &rows);
    for (int run = 0; run < 3; ++run) {
      const headwise::token token{0, 5};
      const hlc::step_part part{0, {&token, 1}};
      ASSERT_TRUE(rows.try_begin({&part, 1}));
      hlc::token_batch batch(1);
      batch.add(token.id, 0, 0, true);
      const char* const problem = context.run(batch);
      ASSERT_NE(problem, nullptr) << "run " << run;
      EXPECT_NE(std::string(problem).find("ALiBi"), std::string::npos) << problem;
      rows.cancel();
      context.empty_cells();
    }
  }
}

}  // namespace
}  // namespace headwise_tests
