# SPDX-License-Identifier: Apache-2.0
"""The two plots of bench/run.sh."""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402, after the choice of a backend
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

INK, MUTED = "#222222", "#8a8a8a"
# variant: label, colour, line
LINES = {
    "dense_f32": ("dense f32, Eigen", "#c4622d", "-"),
    "global_f16": ("headwise f16, every head global", "#1f5fa8", "-"),
    "half_f16": ("headwise f16, half of the rows", "#2a9d72", "-"),
    "stream_f16": ("one read of all f16 rows", MUTED, ":"),
}
GROUP_COLOURS = ("#a9cbe8", "#6aa3d5", "#2f76b5", "#123f6d")


def style(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.tick_params(colors=INK, labelsize=9, length=3)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def plain(value, _):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def draw_lengths(lines, path):
    """lines: {variant: [(tokens, milliseconds, bytes or None)]}"""
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.2))
    titles = ("Time of one layer, milliseconds", "Keys and values of one layer, MiB")
    for panel, (axes, title) in enumerate(zip(panels, titles)):
        for variant, points in lines.items():
            label, colour, line = LINES[variant]
            at = [(n, ms if panel == 0 else held / 2**20) for n, ms, held in points if panel == 0 or held]
            if at:
                axes.plot(*zip(*at), line, color=colour, label=label, linewidth=2, marker="o", markersize=4)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks([n for n, _, _ in next(iter(lines.values()))])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        axes.set_xlabel("tokens in the cache", color=INK)
        axes.set_title(title, loc="left", fontsize=11, color=INK)
        style(axes)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncol=4, frameon=False, fontsize=9)
    figure.suptitle("Decode attention, 8 KV heads x 4 query heads, head_dim 128, cold rows, 1 thread",
                    x=0.01, ha="left", fontsize=12, color=INK)
    figure.tight_layout(rect=(0, 0.07, 1, 0.98))
    figure.savefig(path, dpi=150)


def draw_codecs(fractions, path):
    """fractions: {codec: {group: fraction of the stream}}"""
    figure, axes = plt.subplots(figsize=(9.6, 4.2))
    width = 0.2
    for i, group in enumerate(next(iter(fractions.values()))):
        at = [codec + (i - 1.5) * width for codec in range(len(fractions))]
        bars = axes.bar(at, [by_group[group] for by_group in fractions.values()], width * 0.92,
                        color=GROUP_COLOURS[i], label=f"{group} query head{'s' if group > 1 else ''} a KV head")
        axes.bar_label(bars, fmt="%.2f", fontsize=7.5, color=INK, padding=2)
    axes.axhline(1.0, color=MUTED, linestyle=":", linewidth=1.5)
    axes.set_xticks(range(len(fractions)), [codec.replace("+", " keys,\n") + (" values" if "+" in codec else "")
                                            for codec in fractions])
    axes.set_ylim(0, 1.1 * max(1.0, *(f for by_group in fractions.values() for f in by_group.values())))
    axes.set_ylabel("fraction of the streaming limit", color=INK)
    style(axes)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=4, frameon=False, fontsize=9)
    figure.suptitle("Decode attention against one read of the same bytes, 8,192 tokens, head_dim 128, 1 thread",
                    x=0.01, ha="left", fontsize=12, color=INK)
    figure.tight_layout(rect=(0, 0.06, 1, 0.98))
    figure.savefig(path, dpi=150)
