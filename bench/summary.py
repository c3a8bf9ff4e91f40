# SPDX-License-Identifier: Apache-2.0
"""summary.py FOLDER: what the runs of bench/run.sh say about the goals.

Reads FOLDER/runs/*.json, as Google Benchmark wrote them; prints a table, and writes
FOLDER/summary.json and the plots. A value is a ratio of medians over the repetitions of one run.
"""
import collections
import json
import operator
import pathlib
import re
import statistics
import sys

import plots

LENGTHS = (512, 2048, 8192, 32768)
GROUPS = (1, 2, 4, 8)
CODECS = ("f32", "f16", "bf16", "int8", "int8+int4", "int4")
CONTEXT = ("compiler", "flags", "check_level", "vector_bytes", "caches", "load_avg", "date")


class Run:
    """The samples of one run, or of several that are alike, by case and variant."""

    def __init__(self, *reports):
        self.times = collections.defaultdict(list)  # microseconds
        self.counters = collections.defaultdict(list)
        for report in reports:
            for sample in report["benchmarks"]:
                if sample["run_type"] == "iteration":
                    self._add(sample)

    def _add(self, sample):
        name, real = re.subn(r"/real_time$", "", sample["name"])
        case, variant = name.split("/")[1:3]
        unit = {"ns": 1e-3, "us": 1.0, "ms": 1e3}[sample["time_unit"]]
        self.times[case, variant].append(sample["real_time" if real else "cpu_time"] * unit)
        for key, value in sample.items():
            if isinstance(value, float):
                self.counters[case, variant, key].append(value)

    def cases(self):
        return sorted({case for case, _ in self.times})

    def variants(self, case=None):
        return [v for c, v in self.times if case in (None, c)]

    def time(self, variant, case=None):
        return statistics.median(self.times[case or self.cases()[0], variant])

    def counter(self, variant, key, case=None):
        return statistics.median(self.counters[case or self.cases()[0], variant, key])


def over(run, above, below, case=None):
    """A ratio of two variants' times, and the medians that it came from."""
    parts = {variant: run.time(variant, case) for variant in (above, below)}
    return parts[above] / parts[below], parts


def worst(ratios):
    """The greatest of {name: (ratio, parts)}, with all of them."""
    return max(ratio for ratio, _ in ratios.values()), {
        name: {"ratio": ratio, **parts} for name, (ratio, parts) in ratios.items()
    }


def fraction_of_stream(run, threads=""):
    value, parts = over(run, "stream_f16" + threads, "global_f16" + threads)
    if not threads:
        parts["in_order_f16"] = run.time("in_order_f16")
    return value, parts


def against_ggml(runs, form):
    def ratio(run):
        best = min((v for v in run.variants() if v.startswith(form)), key=run.time)
        value, parts = over(run, "global_f16", best)
        return value, {v: run.time(v) for v in run.variants() if v.startswith(form)} | parts

    return worst({f"{length} tokens": ratio(runs[f"ggml_{length}"]) for length in (2048, 8192)})


def generic_over_native(runs):
    def ratio(case, variant):
        parts = {kind: runs[kind].time(variant, case) for kind in ("generic", "native")}
        return parts["generic"] / parts["native"], parts

    return worst({f"{c}, {v}": ratio(c, v) for c, v in runs["native"].times})


def bookkeeping(runs):
    parts = {v: runs["decode_2048"].counter(v, "bookkeeping_fraction") for v in ("global", "half", "quarter")}
    return parts["half"], parts


def resident_over_ideal(runs):
    run = runs["memory"]
    parts = {
        case: {v: run.counter(v, "resident_over_ideal", case) for v in run.variants(case)} for case in run.cases()
    }
    return max(part["blueprint"] for part in parts.values()), parts


def against_dense(runs):
    return worst({f"group {g}": over(runs[f"attend_g{g}"], "global_f16", "dense_f32") for g in (1, 4)})


AT_LEAST, AT_MOST = (">=", operator.ge), ("<=", operator.le)

# key, goal, what it is, runs -> (value, the medians that it came from)
GOALS = [
    ("f16_g1_fraction_of_stream", AT_LEAST, 0.95, "f16, group 1, head_dim 128, 8,192 rows, 1 thread",
     lambda runs: fraction_of_stream(runs["attend_g1"])),
    ("f16_g4_fraction_of_stream", AT_LEAST, 0.70, "the same with group 4",
     lambda runs: fraction_of_stream(runs["attend_g4"])),
    ("f16_g8_fraction_of_stream", AT_LEAST, 0.50, "the same with group 8",
     lambda runs: fraction_of_stream(runs["attend_g8"])),
    ("f16_g4_2threads_fraction_of_stream", AT_LEAST, 0.70, "group 4, 2 threads against a stream of 2 threads",
     lambda runs: fraction_of_stream(runs["attend_g4"], ", 2 threads")),
    ("int8_over_f16_time", AT_MOST, 0.58, "keys and values in int8_row, group 1",
     lambda runs: over(runs["attend_g1"], "global_int8", "global_f16")),
    ("int4_over_f16_time", AT_MOST, 0.40, "keys and values in int4_group, group 1",
     lambda runs: over(runs["attend_g1"], "global_int4", "global_f16")),
    ("half_blueprint_over_global_time", AT_MOST, 0.54, "decode step, 32 layers, 50 % of the rows of 8,192 tokens",
     lambda runs: over(runs["decode_8192"], "half", "global")),
    ("quarter_blueprint_over_global_time", AT_MOST, 0.29, "decode step, 32 layers, 25 % of the rows of 8,192 tokens",
     lambda runs: over(runs["decode_8192"], "quarter", "global")),
    ("global_over_dense_eigen_time", AT_MOST, 0.28, "f16 against dense f32 Eigen, the worse of groups 1 and 4",
     against_dense),
    ("global_over_ggml_fa_on_time", AT_MOST, 0.20, "flash attention on, group 4, the worse of 2,048 and 8,192 rows",
     lambda runs: against_ggml(runs, "fa_on")),
    ("global_over_ggml_fa_off_time", AT_MOST, 0.33, "flash attention off, the same",
     lambda runs: against_ggml(runs, "fa_off")),
    ("bookkeeping_fraction", AT_MOST, 0.03, "try_append + write + commit, of a step at 2,048 tokens, half blueprint",
     bookkeeping),
    ("generic_build_over_native_time", AT_MOST, 1.10, "no -march over -march=native, the worst of f16, int8, groups 1, 4",
     generic_over_native),
    ("resident_over_ideal_bytes", AT_MOST, 1.06, "windows of 16 to 512 rows, the worse of 2,048 and 32,768 tokens",
     resident_over_ideal),
    ("profile_fraction_of_stream", AT_LEAST, 0.30, "maps of 4,096 tokens, 16 candidates",
     lambda runs: over(runs["profile"], "stream", "16 candidates")),
]


def judge(runs):
    rows = []
    for key, (sign, holds), goal, what, measure in GOALS:
        row = {"key": key, "value": None, "goal": f"{sign} {goal:.2f}", "met": None, "what": what}
        try:
            row["value"], row["medians"] = measure(runs)
            row["met"] = holds(row["value"], goal)
        except KeyError as missing:  # such as ggml, where it was not found
            row["what"] += f" (not measured: no run {missing})"
        rows.append(row)
    return rows


def print_table(rows):
    cells = [("key", "value", "goal", "met", "what")]
    for row in rows:
        value = "-" if row["value"] is None else f"{row['value']:.3f}"
        met = {True: "yes", False: "**no**", None: "-"}[row["met"]]
        cells.append((f"`{row['key']}`", value, row["goal"], met, row["what"]))
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    cells.insert(1, tuple("-" * width for width in widths))
    print()
    for line in cells:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")


def by_length(runs):
    """{variant: [(tokens, milliseconds, bytes)]} of one layer in group 4."""
    at = {512: "length_512", 2048: "length_2048", 8192: "attend_g4", 32768: "length_32768"}
    return {
        variant: [
            (n, runs[at[n]].time(variant) / 1e3, runs[at[n]].counter(variant, "held") if held else None)
            for n in LENGTHS
        ]
        for variant, held in (("dense_f32", True), ("global_f16", True), ("half_f16", True), ("stream_f16", False))
    }


def by_codec(runs):
    """{codec: {group: fraction of the stream of the same bytes}}"""
    return {
        codec: {g: over(runs[f"attend_g{g}"], f"stream_{codec}", f"global_{codec}")[0] for g in GROUPS}
        for codec in CODECS
    }


def machine(report):
    model = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    context = report["context"]
    return {"cpu": model[1] if model else "unknown", "cores": context["num_cpus"],
            **{key: context[key] for key in CONTEXT}}


def main(folder):
    reports = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))}
    runs = {name: Run(report) for name, report in reports.items()}
    for kind in ("generic", "native"):
        runs[kind] = Run(*(report for name, report in reports.items() if name.startswith(kind)))
    rows, lengths, codecs = judge(runs), by_length(runs), by_codec(runs)
    report = {"machine": machine(reports["attend_g1"]), "keys": {row.pop("key"): row for row in map(dict, rows)},
              "by_length": lengths, "fraction_of_stream_by_codec_and_group": codecs}
    (folder / "summary.json").write_text(json.dumps(report, indent=1) + "\n")
    plots.draw_lengths(lengths, folder / "length.png")
    plots.draw_codecs(codecs, folder / "codecs.png")
    print_table(rows)
    print(f"\n{report['machine']['cpu']}, {report['machine']['cores']} cores, {report['machine']['compiler']}, "
          f"{report['machine']['flags']}\nWritten: {folder}/summary.json, length.png, codecs.png")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
