"""The data card of a corpus: what was measured, how, on what, and how noisy it is.

python scripts/corpus_card.py                                      prints the card of checkpoints/corpus/first
python scripts/corpus_card.py checkpoints/corpus/first --write     writes it to README.md in that folder
python scripts/corpus_card.py runs/corpora/first --json            the numbers behind it

It holds only what is in the corpus and in the model's configuration: the same corpus gives the same card.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _corpus_numbers import numbers
from _job import REPO, say

from gnnperf.cli.output import to_json
from gnnperf.errors import GnnperfError

CORPUS = REPO / "checkpoints" / "corpus" / "first"
MODEL = REPO / "configs" / "models" / "first.yaml"

METHOD = """
`gnnperf collect` cut every kernel into normalised loop nests, each with the inputs it has in a run of its
kernel. A first look at each nest measured the default schedules and random ones. The cross pass measured on
each nest schedules that were good on others (origin `foreign`): {portfolio} that are the same for all nests,
chosen greedily so that together they do best over the families, and the best of the nests most like it. The
converge pass went on with mutations of the best until they found nothing better. Each candidate was compiled
to a library and run in a process of its own, with limits of time and memory. Its outputs were compared with
those of DaCe's unoptimised code on the same inputs, and only what agreed was timed: interleaved with the
nest's baseline in one process, after a warm-up, until the intervals were narrow or the time was used up; what
was three times slower than the nest's best, or ten times slower than its baseline, was given up after the
warm-up. Only one process at a time timed anything, before all others on the machine, where other work went on
meanwhile. Medians with 95% intervals are kept. `speedup` is the baseline's median over the candidate's, from
the same process. Schedules that lower to code that was measured share its measurement. Whatever failed is
kept with its status and without times.
"""
RANDOM = """
Families whose names begin with `random_` are random nests (`gnnperf/corpus/random_nests.py`), which cover the
space between the kernels that people name.
"""
SPREAD = """
Without the {given_up} measurements that were given up after the first runs. The
baseline of a nest is timed again beside every candidate, each time in another process. The spread is (90th -
10th percentile) / median of its medians, over the {repeated_baselines} nests that have at least five: what to
expect of the same code measured twice. It holds the drift of the machine, of which speedups, measured
interleaved, hold less.
"""
FILES = """\
## Files

JSON lines, compressed with zstd; `gnnperf.training.load_corpus` reads them.

| file | one line is |
|---|---|
| `nests` | a nest: program graph, digest, kernel, family, symbols, baseline, dynamic profile, device |
| `measurements` | a schedule on a nest: status, median, interval, samples, the same of the baseline |
| `done` | what is finished: a kernel by a pass, the search of a nest with its budget, the portfolio |
"""
LICENCE = """
Measured by the gnnperf project, on kernels and inputs of its own (`configs/corpus`). It holds no data of
others and is under the same terms as the rest of this repository.
"""


def card(name: str, n: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    what = (
        f"{n['nests']} loop nests of {n['kernels']} kernels (a kernel at one size) in {len(n['families'])} "
        f"families, {n['measurements']:,} measurements of (nest, schedule), {n['timed']:,} of them timed. "
        "Schedules that lower to the same code share one measurement: "
        f"{n['distinct_timings']:,} timings are distinct."
    )
    sections = (
        f"# Corpus `{name}`\n",
        "<!-- Written by scripts/corpus_card.py from the files beside it: run it again, do not edit. -->\n",
        _paragraph(what),
        "## How it was measured\n",
        _table(("what", "value"), _measured(n).items()),
        _paragraph(METHOD.format(portfolio=n["portfolio"])),
        _traits(n["traits"]),
        _searches(n["searches"], n["foreign_per_nest"]),
        _families(n["families"]),
        _speedups(n["best_speedup"], n["nests"]),
        _noise(n["noise"]),
        FILES,
        "## Licence\n",
        _paragraph(LICENCE),
    )
    return "\n".join(sections)


def _measured(n: Mapping[str, Any]) -> dict[str, str]:
    finished = ", ".join(f"{name} {count}" for name, count in sorted(n["passes"].items(), reverse=True))
    return {
        "machine": _listed(n["machines"]),
        "threads": _listed(n["threads"]),
        "compiler": _listed(n["compilers"]),
        "collected": ", ".join(n["collected"]) or "not recorded",
        "frontend": _listed(n["frontends"]),
        "baseline": _listed(n["baselines"]),
        "status": _listed(n["statuses"]),
        "origin of the schedule": _listed(n["origins"]),
        "kernels finished by pass": finished or "not recorded",
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
    splits = Counter(family["split"] for family in families.values())
    counts = ", ".join(f"{splits[split]} {split}" for split in ("training", "validation", "test"))
    rows = (
        (name, f["split"], f["nests"], f["measurements"], f["failed"], f"{f['best_speedup']:.2f}")
        for name, f in families.items()
    )
    text = (
        f"Whole families are held out of training: {counts}. The speedup is the geometric mean over nests of "
        "the best found, where the baseline counts as 1."
    )
    heads = ("family", "split", "nests", "measurements", "failed", "best speedup")
    if any(name.startswith("random_") for name in families):
        text += RANDOM
    return "\n".join(("## Families\n", _paragraph(text), _table(heads, rows, numbers_from=2)))


def _speedups(best: Mapping[str, float], nests: int) -> str:
    names = ("minimum", "p10", "p25", "p50", "p75", "p90", "maximum", "geometric_mean")
    limits = {k.removeprefix("at_least_"): v for k, v in best.items() if k.startswith("at_least_")}
    reached = ", ".join(f"{count:.0f} at least {limit}x" for limit, count in limits.items())
    text = (
        f"Of {nests} nests: {reached}; for {best['none_found']:.0f} nothing beat the baseline. The best of "
        "many measurements is counted, so that small speedups are flattered by noise."
    )
    heads = [name.replace("_", " ") for name in names]
    values = _table(heads, [[f"{best[name]:.2f}" for name in names]], numbers_from=0)
    return "\n".join(("## Best speedup of a nest over its baseline\n", values, _paragraph(text)))


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
    return "\n".join(("## Noise\n", table, _paragraph(SPREAD.format(**noise))))


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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", type=Path, default=CORPUS, help="folder of the corpus")
    parser.add_argument("--model", type=Path, default=MODEL, help="configuration with the held-out families")
    parser.add_argument("--write", action="store_true", help="write README.md into the folder")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    try:
        found = numbers(arguments.corpus, arguments.model)
    except GnnperfError as error:
        say(f"corpus_card.py: {error}")
        return error.exit_code
    text = card(arguments.corpus.resolve().name, found)
    if arguments.write:
        (arguments.corpus / "README.md").write_text(text, encoding="utf-8")
    if arguments.json:
        print(to_json({"benchmark": "corpus_card", **found}))
    elif not arguments.write:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
