// SPDX-License-Identifier: Apache-2.0
//
// The look of report_page, for light and dark surroundings.
#pragma once

#include <string_view>

namespace headwise_tool {

inline constexpr std::string_view report_style = R"(
:root{color-scheme:light dark;--page:#f6f8fa;--card:#fff;--line:#d0d7de;--ink:#1f2328;--soft:#59636e;
--rest:#eceff2;--fill:#2171b5}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--line:#3d444d;--ink:#f0f6fc;
--soft:#9198a1;--rest:#2a313c;--fill:#4a97c9}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1040px;margin:0 auto;padding:24px 16px}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 24px;
margin:0 0 16px}
section.map{border:0;background:none;padding:0}
section.map svg{width:100%;height:auto}
section.map .note{padding:0 8px}
h2{font-size:18px;margin:4px 0 8px}
p{margin:8px 0}
.note{color:var(--soft);font-size:13px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:4px 12px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
thead th{color:var(--soft);font-weight:600;font-size:13px}
tbody th{text-align:left;font-weight:600}
.rival th{font-weight:400;color:var(--soft)}
.words{text-align:left}
.chip{display:inline-block;min-width:42px;padding:0 6px;border-radius:3px;text-align:center;
font-size:12px;font-weight:600}
.layers div{display:grid;grid-template-columns:70px 1fr 130px;gap:12px;align-items:center;
font-size:13px;line-height:1.45}
.layers span:last-child{text-align:right;font-variant-numeric:tabular-nums}
.track{height:10px;background:var(--rest);border-radius:2px;overflow:hidden}
.fill{display:block;height:100%;background:var(--fill)}
.pictures{display:flex;flex-wrap:wrap;gap:12px}
figure{margin:0}
figure div{display:flex;gap:2px}
figure img{width:64px;height:64px;image-rendering:pixelated;border-radius:2px;display:block}
figcaption{font-size:11px;line-height:1.6;color:var(--soft);margin-top:3px}
.kept{color:#2171b5}.lost{color:#b35900}
@media (prefers-color-scheme:dark){.kept{color:#74b3d8}.lost{color:#f28c28}}
summary{cursor:pointer}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;font-size:13px;margin:0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
)";

}  // namespace headwise_tool
