// SPDX-License-Identifier: Apache-2.0

#include "report_page.hpp"

#include "curve_chart.hpp"
#include "head_class.hpp"
#include "head_map.hpp"
#include "markup.hpp"
#include "numbers.hpp"
#include "png.hpp"
#include "report_style.hpp"

namespace headwise_tool {
namespace {

std::string cell(std::string_view text, std::string_view tag = "td") {
  return "<" + std::string(tag) + ">" + escaped(text) + "</" + std::string(tag) + ">";
}

std::string chip(const head_class& c) {
  const colours look = colours_of(c);
  return "<span class=\"chip\" style=\"background:" + std::string(look.fill) +
         ";color:" + std::string(look.ink) + "\">" + escaped(label(c)) + "</span>";
}

// Plain words for what has no figure.
std::string recovery_text(const headwise::head_plan& head) {
  return head.recovery > 0.0 ? fixed(head.recovery, 4) : "not measured";
}

class page {
 public:
  explicit page(const report& what) : what_(what), plan_(what.plan) {}

  [[nodiscard]] std::string write() {
    const std::string name = plan_.model.name.empty() ? "model" : plan_.model.name;
    out_ =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
        escaped(name) + ": head map</title>\n<style>" + std::string(report_style) +
        "</style>\n</head>\n<body>\n<main>\n";
    write_map();
    write_measured();
    write_classes();
    write_layers();
    write_pictures();
    write_heads();
    write_origin();
    out_ += "</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  void write_map() {
    out_ += "<section class=\"map\">\n" + head_map_svg(plan_, what_.layout, what_.measured) +
            "<p class=\"note\">Hold the pointer over a head to see what it keeps, how much of its "
            "attention that is, and which cheaper class fell short.</p>\n</section>\n";
  }

  void write_score(const std::string& name, const plan_score& score, bool rival) {
    const evaluation& m = *what_.measured;
    const bool full = &score == &m.full;
    out_ += (rival ? "<tr class=\"rival\">" : "<tr>") + cell(name, "th") +
            cell(short_bytes(score.resident_bytes)) +
            cell(percent(score.resident_bytes / m.full_bytes)) + cell(fixed(score.perplexity, 3)) +
            cell(full ? "" : change(score.perplexity, m.full.perplexity)) +
            cell(full ? "" : percent(score.agreement)) + "</tr>\n";
  }

  void write_measured() {
    if (what_.measured == nullptr) return;
    const evaluation& m = *what_.measured;
    out_ +=
        "<section>\n<h2>What it saves, and what that costs</h2>\n<p>" +
        escaped(counted(m.tokens_evaluated, "token") + " of " + m.text + " in windows of " +
                with_commas(m.window_tokens) + ", " + m.cache + " cache.") +
        "</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th>bytes held</th><th>kept</th>"
        "<th>perplexity</th><th>change</th><th>same next token</th></tr></thead>\n<tbody>\n";
    write_score("full cache", m.full, false);
    for (const blueprint_score& at : m.scores) {
      write_score("blueprint, target " + fixed(at.recovery_target, 2), at.blueprint, false);
      write_score("first " + std::to_string(at.sinks) + " + last " +
                      std::to_string(at.window_behind_sinks) + ", every head",
                  at.sinks_and_window, true);
      write_score("last " + std::to_string(at.window) + ", every head", at.plain_window, true);
    }
    out_ +=
        "</tbody>\n</table></div>\n<p class=\"note\">Bytes held: everything that the cache's "
        "memory resource gave out (keys, values, positions, page tables, unfilled slots), read "
        "after every " +
        std::to_string(step_tokens) + " tokens; the mean. Kept: of the " +
        short_bytes(m.full_bytes) +
        " that the keys and values alone take in a dense cache at "
        "the same positions. The two windows hold at least as many bytes as the blueprint above "
        "them. Same next token: positions where the likeliest token is that of the full "
        "cache.</p>\n";
    if (m.scores.size() > 1) out_ += curve_chart(m);
    out_ += "</section>\n";
  }

  void write_classes() {
    out_ +=
        "<section>\n<h2>Classes</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>"
        "<th class=\"words\">keeps</th><th>heads</th><th>mean recovery</th><th>mean rows</th>"
        "</tr></thead>\n<tbody>\n";
    for (const class_count& c : classes_of(plan_))
      out_ += "<tr><th>" + chip(c.what) + "</th><td class=\"words\">" + escaped(in_words(c.what)) +
              "</td>" + cell(std::to_string(c.heads)) + cell(fixed(c.mean_recovery, 4)) +
              cell(percent(c.mean_resident_fraction)) + "</tr>\n";
    out_ +=
        "</tbody>\n</table></div>\n<p class=\"note\">Recovery: the share of a head's attention "
        "that falls on what it keeps, of its worst query head unless said otherwise below. "
        "Rows: of a full cache at " +
        counted(plan_.origin.length, "token") +
        ".</p>\n"
        "</section>\n";
  }

  void write_layers() {
    const double full = static_cast<double>(full_bytes(plan_.shape.kv_heads, what_.layout.length,
                                                       what_.layout.batch, what_.layout.row_bytes));
    out_ += "<section>\n<h2>Bytes by layer</h2>\n<p>Expected keys and values at " +
            counted(what_.layout.length, "token") + ", of " + short_bytes(full) +
            " a layer in a full cache.</p>\n<div class=\"layers\">\n";
    for (std::uint32_t layer = 0; layer < plan_.shape.layers; ++layer) {
      const auto bytes = static_cast<double>(expected_layer_bytes(plan_, layer, what_.layout));
      out_ += "<div><span>layer " + std::to_string(layer) +
              "</span><span class=\"track\"><span class=\"fill\" style=\"width:" +
              fixed(100.0 * bytes / full, 1) + "%\"></span></span><span>" + short_bytes(bytes) +
              ", " + percent(bytes / full, 0) + "</span></div>\n";
    }
    out_ += "</div>\n</section>\n";
  }

  void write_pictures() {
    if (what_.pictures.empty()) return;
    out_ +=
        "<section>\n<h2>What the heads look at</h2>\n<p>The first recorded prompt: queries "
        "down, keys across, one picture for each query head. <b class=\"kept\">Blue</b> is "
        "attention on what the head keeps, <b class=\"lost\">orange</b> what it gives up; "
        "brightness is logarithmic, from 0.1 % to all of a query's attention.</p>\n"
        "<div class=\"pictures\">\n";
    for (std::uint32_t layer = 0; layer < plan_.shape.layers; ++layer)
      for (std::uint32_t head = 0; head < plan_.shape.kv_heads; ++head) write_group({layer, head});
    out_ += "</div>\n</section>\n";
  }

  // The pictures of the query heads that read one KV head, with its class.
  void write_group(headwise::head_id id) {
    const std::uint32_t group = plan_.shape.group_size();
    const headwise::head_plan& head = plan_.head(id);
    out_ += "<figure title=\"" + escaped(describe_head(plan_, id, what_.layout)) + "\"><div>";
    for (std::uint32_t g = 0; g < group; ++g) {
      const std::size_t query_head = std::size_t{id.kv_head} * group + g;
      const attention_picture& picture =
          what_.pictures[std::size_t{id.layer} * plan_.shape.query_heads + query_head];
      out_ += "<img alt=\"attention of layer " + std::to_string(id.layer) + ", query head " +
              std::to_string(query_head) + ": " + percent(picture.kept) +
              " kept\" src=\"data:image/png;base64," + base64(picture.png) + "\">";
    }
    out_ += "</div><figcaption>" + chip(class_of(head.policy)) + " layer " +
            std::to_string(id.layer) + ", head " + std::to_string(id.kv_head) + "<br>" +
            escaped(recovery_text(head)) + "</figcaption></figure>\n";
  }

  void write_heads() {
    out_ += "<section>\n<h2>Every head</h2>\n<details><summary>Figures of all " +
            with_commas(plan_.heads.size()) +
            " heads</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>layer, head</th>"
            "<th></th><th class=\"words\">keeps</th><th>recovery</th><th>expected bytes</th>"
            "<th>rows</th><th class=\"words\">the closest cheaper class</th></tr></thead>\n"
            "<tbody>\n";
    for (std::uint32_t layer = 0; layer < plan_.shape.layers; ++layer)
      for (std::uint32_t head = 0; head < plan_.shape.kv_heads; ++head) write_head({layer, head});
    out_ += "</tbody>\n</table></div>\n</details>\n</section>\n";
  }

  void write_head(headwise::head_id id) {
    const headwise::head_plan& head = plan_.head(id);
    const head_class what = class_of(head.policy);
    const auto* const cheaper = closest_cheaper(head);
    const std::string fell_short =
        cheaper == nullptr ? "" : cheaper->name + ": " + fixed(cheaper->recovery, 4);
    out_ += "<tr>" + cell(std::to_string(id.layer) + ", " + std::to_string(id.kv_head), "th") +
            "<td>" + chip(what) + "</td><td class=\"words\">" + escaped(in_words(what)) + "</td>" +
            cell(recovery_text(head)) +
            cell(with_commas(expected_bytes(head, plan_.tokens, what_.layout))) +
            cell(percent(head.resident_fraction)) + "<td class=\"words\">" + escaped(fell_short) +
            "</td></tr>\n";
  }

  void write_origin() {
    const headwise::provenance& origin = plan_.origin;
    out_ += "<section>\n<h2>Where it comes from</h2>\n<dl>\n";
    const auto entry = [&](std::string_view name, std::string_view value) {
      out_ += "<dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd>\n";
    };
    entry("shape", std::to_string(plan_.shape.layers) + " layers, " +
                       std::to_string(plan_.shape.query_heads) + " query heads, " +
                       std::to_string(plan_.shape.kv_heads) + " KV heads, head_dim " +
                       std::to_string(plan_.shape.head_dim));
    entry("tokenizer",
          plan_.model.tokenizer + ", " + with_commas(plan_.model.vocab_size) + " tokens");
    entry("rule", "recovery target " + fixed(origin.recovery_target, 4) + ", criterion " +
                      std::string(to_string(origin.criterion)) + ", " +
                      std::string(to_string(origin.aggregation)) + " query head of a group, by " +
                      std::string(to_string(origin.granularity)));
    entry("profile", counted(origin.prompts, "prompt") + ", " +
                         counted(origin.queries, "query", "queries") + " of each head");
    for (const headwise::profile_source& source : origin.sources)
      entry("source", source.name + "  sha256 " + source.sha256);
    entry("made by", origin.tool);
    out_ += "</dl>\n</section>\n";
  }

  const report& what_;
  const headwise::blueprint& plan_;
  std::string out_;
};

}  // namespace

std::string report_page(const report& what) {
  return page(what).write();
}

}  // namespace headwise_tool
