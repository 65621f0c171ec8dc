"""The data card of a corpus: what was measured, how, on what, and how noisy it is."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gnnperf.corpus.card_numbers import numbers_of

__all__ = ["card_of", "numbers_of"]

RECIPES = """
`gnnperf collect` cut every kernel into normalised loop nests, each with the inputs it has in a run of its
kernel. A first look at each nest measured the default schedules and random ones. The cross pass measured on
each nest schedules that were good on others (origin `foreign`): {portfolio} that are the same for all nests,
chosen greedily so that together they do best over the families{portfolio_of}, and the best of the nests most
like it. The converge pass went on with mutations of the best until they found nothing better. Each candidate
was compiled to a library and run in a process of its own, with limits of time and memory. Its outputs were
compared with those of DaCe's unoptimised code on the same inputs, and only what agreed was timed: interleaved
with the nest's baseline in one process, after a warm-up, until the intervals were narrow or the time was used
up; what was three times slower than the nest's best, or ten times slower than its baseline, was given up
after the warm-up. Only one process at a time timed anything, before all others on the machine, where other
work went on meanwhile. Medians with 95% intervals are kept. `speedup` is the baseline's median over the
candidate's, from the same process. Schedules that lower to code that was measured share its measurement.
Whatever failed is kept with its status and without times.
"""
TRACES = """
`gnnperf collect` searched each workload with MetaSchedule: a share of its schedules was drawn at random
(origin `random`), the others found by the evolutionary search with its XGBoost cost model, in passes over all
workloads. Each schedule was built and run in processes of its own, with limits of time. Its result was
compared with that of the unscheduled function on the same random inputs (integers exactly), and only what
agreed was timed: after a warm-up, three samples of at least 10 ms; what was over three times slower than the
best so far was run once. Only one process at a time timed anything, before all others on the machine, where
other work went on meanwhile. Whatever failed is kept with its status. The baseline `tvm-default` is the
unscheduled function, which is what TVM's default pipeline runs on a CPU.
"""
LONG_SEARCHES = """
Long searches (`gnnperf collect` with `beside`), which `gnnperf eval search` compares transfer with. On each
nest, in one session: random schedules; an evolutionary search that begins with some of them; and every
schedule that the other corpus measured on it (origin `foreign`), so that all that is compared was timed
alike. Candidates were verified against DaCe's unoptimised code, and timed interleaved with the baseline.
"""
REMOTE = """
`gnnperf measure pack` sampled schedules and built them; `gnnperf measure run` verified each on the GPU
against the unscheduled function, run on the CPU, and timed it with the events of the GPU, in processes that
may crash or hang. The baseline `tvm-dlight` is TVM's default schedule for GPUs. Whatever failed is kept with
its status.
"""
CONFIGURATIONS = """
`gnnperf collect` drew configurations of each kernel at random, compiled each for the GPU, compared its result
with torch's, and timed what agreed between two events of the GPU, 25 runs after three to warm up. Whatever
failed is kept with its status.
"""
METHODS = {
    "dace-auto": RECIPES, "dace-simplify": RECIPES, "tvm-default": TRACES, "tvm-dlight": REMOTE,
    "first configuration": CONFIGURATIONS,
}  # fmt: skip
"""How it was measured, by the baseline beside which it was."""
RANDOM = """
Families whose names begin with `random_` are random nests (`gnnperf/corpus/random_nests/`), which cover the
space between the kernels that people name.
"""
GIVEN_UP = "Without the {given_up} measurements that were given up after the first runs. "
SPREAD = """
The baseline of a task is timed again beside every candidate, each time in another process. The spread is
(90th - 10th percentile) / median of its medians, over the {repeated_baselines} tasks that have at least five:
what to expect of the same code measured twice. It holds the drift of the machine, of which speedups, measured
interleaved, hold less.
"""
FILES = """\
## Files

JSON lines, compressed with zstd; `gnnperf.corpus.reader.read_corpus` reads them.

| file | one line is |
|---|---|
| `tasks` | a task: name, family, parameters, baseline, device, versions; of a nest its graph and loops |
| `records` | a schedule on a task: status, and the median with its interval or the samples |
| `done` | what is finished: an entry or a workload by a pass, the search of a nest with its budget |
"""
LICENCE = """
Measured by the gnnperf project, on kernels and inputs of its own (`configs/corpus`). It holds no data of
others and is under the same terms as the rest of this repository.
"""


def card_of(name: str, n: Mapping[str, Any]) -> str:
    """The card of a corpus as Markdown. n: of `numbers_of`."""
    what = (
        f"{n['tasks']} tasks ({_listed(n['frontends'])}) from {n['kernels']} kernels (a kernel at one size) "
        f"in {len(n['families'])} families, {n['measurements']:,} measurements of (task, schedule), "
        f"{n['timed']:,} of them timed. Schedules that lower to the same code share one measurement: "
        f"{n['distinct_timings']:,} timings are distinct."
    )
    if n["nests"]:
        what += f" The loops of {n['nests']} are held beside the graph."
    methods = dict.fromkeys(METHODS[baseline] for baseline in n["baselines"] if baseline in METHODS)
    if n["long_searches"]:
        methods = {LONG_SEARCHES: None}
    recipes = "recipe" in n["schedules"] and not n["long_searches"]
    sections = (
        f"# Corpus `{name}`\n",
        "<!-- Written by `gnnperf corpus card` from the files beside it: run it again, do not edit. -->\n",
        _paragraph(what),
        "## How it was measured\n",
        _table(("what", "value"), _measured(n).items()),
        *(_paragraph(_method(method, n)) for method in methods),
        *((_traits(n["traits"]), _searches(n["searches"], n["foreign_per_task"])) if recipes else ()),
        _families(n["families"]),
        _speedups(n["best_speedup"], n["tasks"]),
        _noise(n["noise"]),
        FILES,
        "## Licence\n",
        _paragraph(LICENCE),
    )
    return "\n".join(sections)


def _method(text: str, n: Mapping[str, Any]) -> str:
    other = f" of the corpus `{n['portfolio_of']}`" if n["portfolio_of"] else ""
    return text.format(portfolio=n["portfolio"], portfolio_of=other)


def _measured(n: Mapping[str, Any]) -> dict[str, str]:
    finished = ", ".join(f"{name} {count}" for name, count in sorted(n["passes"].items(), reverse=True))
    return {
        "machine": _listed(n["machines"]),
        "threads": _listed(n["threads"]),
        "versions": _listed(n["versions"]),
        "collected": ", ".join(n["collected"]) or "not recorded",
        "baseline": _listed(n["baselines"]),
        "status": _listed(n["statuses"]),
        "origin of the schedule": _listed(n["origins"]),
        "finished by pass": finished or "not recorded",
    }


def _traits(traits: Mapping[str, int]) -> str:
    return "\n".join(
        ("## What occurs in the nests\n", _table(("trait", "nests"), traits.items(), numbers_from=1))
    )


def _searches(searches: Mapping[str, Any] | None, foreign: Mapping[str, float]) -> str:
    """How long nests were searched, so that "best found" can be judged."""
    text = f"Schedules of other nests measured on a nest: {foreign['p50']:.0f} in the median. "
    if searches is None:
        return "\n".join(("## Searches\n", _paragraph(text + "Budgets were not recorded.")))
    text += (
        f"Budgets of the last search of a nest, recorded for {searches['recorded']} nests: "
        f"{_listed(searches['budgets'])}. What ended it: {_listed(searches['ended'])}; `converged` means "
        "that its patience ended, mutations of the best without an improvement of 2%."
    )
    rows = (
        (what, *(f"{value:.0f}" for value in searches[key].values()))
        for what, key in (("schedules tried", "trials"), ("wall time in s", "seconds"))
    )
    table = _table(("figure", "median", "p95", "maximum"), rows, numbers_from=1)
    return "\n".join(("## Searches\n", _paragraph(text), table))


def _families(families: Mapping[str, Mapping[str, Any]]) -> str:
    splits = Counter(f["split"] for f in families.values() if isinstance(f["split"], str))
    rows = (
        (
            name,
            _listed_split(f["split"]),
            f["tasks"],
            f["measurements"],
            f["failed"],
            f"{f['best_speedup']:.2f}",
        )
        for name, f in families.items()
    )
    text = "The speedup is the geometric mean over tasks of the best found, where the baseline counts as 1. "
    if len(splits) > 1:
        counts = ", ".join(f"{count} {split}" for split, count in splits.most_common())
        text = f"Whole families are held out of training: {counts}. {text}"
    heads = ("family", "split", "tasks", "measurements", "failed", "best speedup")
    if any(name.startswith("random_") for name in families):
        text += RANDOM
    return "\n".join(("## Families\n", _paragraph(text), _table(heads, rows, numbers_from=2)))


def _listed_split(split: str | Mapping[str, int]) -> str:
    return split if isinstance(split, str) else _listed(split)


def _speedups(best: Mapping[str, float], tasks: int) -> str:
    names = ("minimum", "p10", "p25", "p50", "p75", "p90", "maximum", "geometric_mean")
    limits = {k.removeprefix("at_least_"): v for k, v in best.items() if k.startswith("at_least_")}
    reached = ", ".join(f"{count:.0f} at least {limit}x" for limit, count in limits.items())
    text = (
        f"Of {tasks} tasks: {reached}; for {best['none_found']:.0f} nothing beat the baseline. The best of "
        "many measurements is counted, so that small speedups are flattered by noise."
    )
    heads = [name.replace("_", " ") for name in names]
    values = _table(heads, [[f"{best[name]:.2f}" for name in names]], numbers_from=0)
    return "\n".join(("## Best speedup of a task over its baseline\n", values, _paragraph(text)))


def _noise(noise: Mapping[str, Any]) -> str:
    figures = {
        "timed runs of a measurement": ("samples", "{:.0f}"),
        "half-width of the interval over the median": ("half_width", "{:.2%}"),
        "the same of the baseline": ("baseline_half_width", "{:.2%}"),
        "spread of the baseline between candidates": ("baseline_spread", "{:.2%}"),
    }
    rows = (
        (name, *(form.format(value) for value in noise[key].values()))
        for name, (key, form) in figures.items()
        if noise[key] is not None
    )
    table = _table(("figure", "median", "p95", "maximum"), rows, numbers_from=1)
    text = GIVEN_UP.format(**noise) + (SPREAD.format(**noise) if noise["repeated_baselines"] else "")
    return "\n".join(("## Noise\n", table, _paragraph(text)))


def _listed(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} {count:,}" for value, count in counts.items())


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 110, break_on_hyphens=False) + "\n"


def _table(heads: Sequence[str], rows: Iterable[Iterable[Any]], numbers_from: int = 99) -> str:
    """Markdown; columns from `numbers_from` on are aligned right."""
    rule = ["--:" if column >= numbers_from else "---" for column in range(len(heads))]
    lines: list[Iterable[Any]] = [heads, rule, *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
