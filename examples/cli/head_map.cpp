// SPDX-License-Identifier: Apache-2.0

#include "head_map.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "head_class.hpp"
#include "markup.hpp"
#include "numbers.hpp"

namespace headwise_tool {
namespace {

constexpr double margin = 24.0;
constexpr double picture_width = 980.0;
constexpr double gutter = 86.0;  // for the names of the rows

class head_map {
 public:
  head_map(const headwise::blueprint& plan, const cache_layout& layout, const evaluation* measured)
      : plan_(plan),
        layout_(layout),
        measured_(measured),
        cell_width_(
            std::clamp((picture_width - 2 * margin - gutter) / plan.shape.layers, 8.0, 64.0)),
        cell_height_(plan.shape.kv_heads <= 8    ? 26.0
                     : plan.shape.kv_heads <= 16 ? 20.0
                                                 : 15.0),
        labelled_(cell_width_ >= 24.0) {}

  [[nodiscard]] std::string draw() {
    draw_title();
    draw_cells();
    draw_legend();
    draw_bars();
    const double width = std::max(
        picture_width, 2 * margin + gutter + cell_width_ * static_cast<double>(plan_.shape.layers));
    return picture_.finish(width, y_ + margin - 10.0,
                           plan_.model.name + ": what each attention head keeps");
  }

 private:
  void draw_title() {
    const auto& origin = plan_.origin;
    const std::string name = plan_.model.name.empty() ? "model" : plan_.model.name;
    picture_.text(margin, 38, name + ": what each attention head keeps", "hw-title");
    std::string line = std::to_string(plan_.shape.layers) + " layers, " +
                       std::to_string(plan_.shape.kv_heads) + " KV heads each";
    if (plan_.shape.group_size() > 1)
      line += ", every one read by " + std::to_string(plan_.shape.group_size()) + " query heads";
    if (origin.prompts > 0)
      line += "; profiled on " + counted(origin.queries, "token") + ", to keep " +
              (origin.budget ? percent(*origin.budget, 0) + " of the rows"
                             : percent(origin.recovery_target, 0) + " of each head's attention");
    picture_.text(margin, 60, line, "hw-note");
    y_ = 84;
  }

  void draw_cells() {
    const double left = margin + gutter;
    picture_.text(left - 10, y_ + 4, "layer", "hw-note", "end");
    for (std::uint32_t layer = 0; layer < plan_.shape.layers; ++layer)
      if (cell_width_ >= 20 || layer % 5 == 0)
        picture_.text(left + (layer + 0.5) * cell_width_, y_ + 4, std::to_string(layer), "hw-note",
                      "middle");
    y_ += 12;
    for (std::uint32_t head = 0; head < plan_.shape.kv_heads; ++head) {
      picture_.text(left - 10, y_ + cell_height_ / 2 + 4, "KV head " + std::to_string(head),
                    "hw-note", "end");
      for (std::uint32_t layer = 0; layer < plan_.shape.layers; ++layer)
        draw_cell({layer, head},
                  {left + layer * cell_width_ + 1, y_ + 1, cell_width_ - 2, cell_height_ - 2});
      y_ += cell_height_;
    }
    y_ += 28;
  }

  void draw_cell(headwise::head_id head, const box& at) {
    const head_class what = class_of(plan_.head(head).policy);
    const colours look = colours_of(what);
    picture_.open_group(describe_head(plan_, head, layout_));
    picture_.rectangle(at, look.fill);
    if (labelled_)
      picture_.text(at.x + at.width / 2, at.y + at.height / 2 + 4, label(what),
                    cell_width_ < 32.0 ? "hw-cell hw-small" : "hw-cell", "middle", look.ink);
    picture_.close_group();
  }

  // One swatch and its words, in the next line where this one is full; moves x on.
  void draw_swatch(double& x, const head_class& what, std::string_view mark,
                   std::string_view words) {
    constexpr double swatch = 34.0, letter = 6.7;
    const colours look = colours_of(what);
    const double length = letter * static_cast<double>(words.size());
    if (x + swatch + 6 + length > picture_width - margin) {
      x = margin;
      y_ += 24;
    }
    picture_.rectangle({x, y_ - 13, swatch, 18}, look.fill);
    picture_.text(x + swatch / 2, y_, mark, "hw-cell", "middle", look.ink);
    x += swatch + 2;
    if (words.empty()) return;
    picture_.text(x + 4, y_ + 1, words, "hw-text");
    x += 26 + length;
  }

  void draw_legend() {
    std::array<std::size_t, 4> heads{};  // of each kind
    std::set<headwise::token_count> windows;
    bool punctuation = false, learned = false, frequent = false;
    for (const class_count& c : classes_of(plan_)) {
      heads[static_cast<std::size_t>(c.what.kind)] += c.heads;
      if (c.what.kind == head_kind::window) windows.insert(c.what.window);
      punctuation |= c.what.punctuation;
      learned |= c.what.learned;
      frequent |= c.what.frequent;
    }
    const auto count = [&](head_kind kind) {
      return " (" + std::to_string(heads[static_cast<std::size_t>(kind)]) + ")";
    };
    const auto used = [&](head_kind kind) { return heads[static_cast<std::size_t>(kind)] > 0; };
    double x = margin;
    if (used(head_kind::special))
      draw_swatch(x, {head_kind::special}, "S", "special tokens" + count(head_kind::special));
    for (const headwise::token_count window : windows) {
      const bool last = window == *windows.rbegin();
      draw_swatch(x, {head_kind::window, window}, std::to_string(window),
                  last ? "so many last tokens" + count(head_kind::window) : "");
    }
    if (used(head_kind::global))
      draw_swatch(x, {head_kind::global}, "all", "every token" + count(head_kind::global));
    if (used(head_kind::other))
      draw_swatch(x, {head_kind::other}, "?", "other" + count(head_kind::other));
    std::string marks;
    const auto mark = [&](bool present, const char* words) {
      if (present) marks += std::string(marks.empty() ? "" : ", ") + words;
    };
    mark(punctuation, "\".\" and punctuation");
    mark(learned, "\"+\" and the tokens that the profile found this head to look for");
    mark(frequent, "\"*\" and those that drew the most attention");
    if (!marks.empty()) {
      y_ += 26;
      picture_.text(margin, y_, marks, "hw-note");
    }
    y_ += 40;
  }

  void draw_bars() {
    if (measured_ == nullptr)
      draw_expected();
    else
      draw_measured(*measured_);
  }

  void draw_expected() {
    const std::uint64_t full =
        full_bytes(plan_.shape.heads(), layout_.length, layout_.batch, layout_.row_bytes);
    const std::uint64_t kept = expected_bytes(plan_, layout_);
    const double share = static_cast<double>(kept) / static_cast<double>(full);
    draw_heading("Expected at " + counted(layout_.length, "token"));
    draw_bar("full cache", 1.0, false, short_bytes(static_cast<double>(full)));
    draw_bar("this blueprint", share, true,
             percent(share) + ", " + short_bytes(static_cast<double>(kept)));
  }

  void draw_measured(const evaluation& m) {
    const blueprint_score& main = m.scores.front();
    draw_heading("Measured on " + counted(m.tokens_evaluated, "token") + " of " + m.text +
                 ", which the profile did not see: bytes held, and perplexity");
    draw_score("full cache", m.full, false);
    draw_score("this blueprint", main.blueprint, true);
    draw_score("first " + std::to_string(main.sinks) + " + last " +
                   std::to_string(main.window_behind_sinks),
               main.sinks_and_window, false);
    draw_score("last " + counted(main.window, "token"), main.plain_window, false);
  }

  void draw_heading(const std::string& words) {
    picture_.text(margin, y_, words, "hw-head");
    y_ += 12;
  }

  // The share that fills a bar: a full cache with its page tables is more than a dense one.
  [[nodiscard]] double bar_scale() const {
    return measured_ == nullptr
               ? 1.0
               : std::max(1.0, measured_->full.resident_bytes / measured_->full_bytes);
  }

  void draw_score(const std::string& name, const plan_score& score, bool by_class) {
    const double share = score.resident_bytes / measured_->full_bytes;
    draw_bar(name, share, by_class,
             percent(share) + ", perplexity " + fixed(score.perplexity, 2) +
                 (&score == &measured_->full
                      ? ""
                      : " (" + change(score.perplexity, measured_->full.perplexity) + ")"));
  }

  void draw_bar(const std::string& name, double share, bool by_class, const std::string& words) {
    constexpr double left = margin + 150, width = 480, height = 18;
    const double filled = width * std::min(share / bar_scale(), 1.0);
    picture_.text(margin, y_ + 14, name, "hw-text");
    picture_.rectangle({left, y_, width, height}, "hw-rest");
    if (by_class)
      draw_shares({left, y_, filled, height});
    else
      picture_.rectangle({left, y_, filled, height}, "#8c959f");
    picture_.text(left + width + 12, y_ + 14, words, "hw-text");
    y_ += 26;
  }

  // The kept rows, by class.
  void draw_shares(box at) {
    double total = 0.0;
    const auto rows = [](const class_count& c) {
      return c.mean_resident_fraction * static_cast<double>(c.heads);
    };
    const std::vector<class_count> classes = classes_of(plan_);
    for (const class_count& c : classes) total += rows(c);
    const double width = at.width;
    for (std::size_t i = 0; i < classes.size();) {
      const std::string_view fill = colours_of(classes[i].what).fill;
      at.width = 0.0;
      for (; i < classes.size() && colours_of(classes[i].what).fill == fill; ++i)
        at.width += width * rows(classes[i]) / total;
      picture_.rectangle(at, fill, 0.0);
      at.x += at.width;
    }
  }

  const headwise::blueprint& plan_;
  const cache_layout& layout_;
  const evaluation* measured_;
  double cell_width_, cell_height_;
  bool labelled_;
  svg_picture picture_;
  double y_ = 0.0;  // where the next part begins
};

}  // namespace

const headwise::candidate_recovery* closest_cheaper(const headwise::head_plan& head) noexcept {
  const headwise::candidate_recovery* best = nullptr;
  for (const headwise::candidate_recovery& c : head.candidates)
    if (c.resident_fraction < head.resident_fraction &&
        (best == nullptr || c.recovery > best->recovery))
      best = &c;
  return best;
}

std::string describe_head(const headwise::blueprint& plan, headwise::head_id id,
                          const cache_layout& layout) {
  const headwise::head_plan& head = plan.head(id);
  const double bytes = static_cast<double>(expected_bytes(head, plan.tokens, layout));
  const double full =
      static_cast<double>(full_bytes(1, layout.length, layout.batch, layout.row_bytes));
  std::string text = "layer " + std::to_string(id.layer) + ", KV head " +
                     std::to_string(id.kv_head) + "\nkeeps " + in_words(class_of(head.policy));
  if (head.recovery > 0.0) text += "\nrecovery " + fixed(head.recovery, 4);
  text += "\nexpected " + short_bytes(bytes) + " at " + counted(layout.length, "token") + ", " +
          percent(bytes / full) + " of a full cache";
  if (const auto* const cheaper = closest_cheaper(head))
    text += "\nnot " + cheaper->name + ": its recovery is " + fixed(cheaper->recovery, 4);
  return text;
}

std::string head_map_svg(const headwise::blueprint& plan, const cache_layout& layout,
                         const evaluation* measured) {
  return head_map(plan, layout, measured).draw();
}

}  // namespace headwise_tool
