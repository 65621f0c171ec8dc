"""Sixty kernels that no corpus holds, beside the best that their users could have called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click

from benchmarks.machine import setup
from benchmarks.options import chosen, kernels_option
from benchmarks.retrieving import retrieve
from benchmarks.unseen import KERNELS, SIZES, UnseenKernel
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import ANY_PATH, nests_checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.report.words import duration

AUTO = "auto"
PACKAGES = ("numpy", "numba", "torch")
LOST = 0.95
"""Ratios below this count as losses, where the whole interval lies below 1."""


@click.command("unseen-kernels", cls=Verb, page=True)
@kernels_option
@click.option(
    "--sizes", type=click.Choice(SIZES), help="Data that lies in the caches, or in memory.  [default: both]"
)
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per nest."
)
@nests_checkpoint_option
@click.option("--markdown", type=ANY_PATH, metavar="FILE", help="Write the tables as Markdown, too.")
@output_option
def unseen_kernels(
    kernels: tuple[str, ...],
    sizes: str | None,
    k: int,
    checkpoint: Path,
    markdown: Path | None,
    output: Path | None,
) -> Report:
    """Sixty kernels that no corpus holds, beside the best that their users could have called.

    Every kernel is given to `gnnperf retrieve` in a process of its own, with the released store and an empty
    store of the user's, so that no kernel learns from another. Beside it, in turn: the faster of DaCe's
    auto_optimize with and without OpenBLAS, NumPy, Numba as its users write it and, for what it has operators
    for, compiled PyTorch, all verified, all on as many threads; which takes about an hour. Numba is an
    optional extra: pip install 'gnnperf[numba]'. Exit code 1: a kernel failed or is wrong.
    """
    named = [KERNELS[name] for name in chosen(KERNELS, kernels)]
    report = UnseenStudy(named, [sizes] if sizes else SIZES, checkpoint, k).run(output)
    if markdown is not None:
        markdown.write_text(as_markdown(report.document["rows"]), encoding="utf-8")
    return report


@dataclass(frozen=True)
class UnseenStudy(Study):
    """Of a row, `ratio` is the median runtime of the fastest other (`best`) over ours (`ours_s`), timed in
    turn; `reason` is why nests were left as they are, and `absent` says by package why it has no time.
    wall_s: of the process, without the others.
    """

    name = "unseen-kernels"
    key = "name"

    kernels: Sequence[UnseenKernel]
    sizes: Sequence[str]
    checkpoint: Path
    k: int

    def settings(self) -> Mapping[str, Any]:
        return {**setup("dace", *PACKAGES), "k": self.k, "checkpoint": self.checkpoint}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {
            f"{kernel.name}, {size}": partial(self.row, kernel, size)
            for size in self.sizes
            for kernel in self.kernels
        }

    def row(self, kernel: UnseenKernel, size: str, say: Say) -> Row:
        """Retrieve for one kernel at one size."""
        words = ["--checkpoint", str(self.checkpoint)]
        words += [word for found in kernel.competitors.values() for word in ("--beside", found)]
        answer = retrieve(kernel.program, kernel.sizes(size), kernel.inputs, self.k, words)
        about = {"name": f"{kernel.name}, {size}", "kernel": kernel.name, "kind": kernel.kind, "size": size}
        if answer.document is None:
            failed = {"failures": [f"{about['name']}: {answer.error}"], "reason": answer.error}
            return {
                **about,
                "verified": False,
                "ours_s": None,
                "ratio": None,
                "wall_s": answer.wall_s,
                **failed,
            }
        return {**about, **told(answer.document, kernel.competitors), "wall_s": _wall_s(answer)}

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Once for each size that was measured, with its name as a suffix."""
        return {
            f"{name}_{size}": value
            for size in SIZES
            if (rows := [row for row in table if row["size"] == size])
            for name, value in figures(rows).items()
        }

    @staticmethod
    def shown(row: Row) -> Row:
        best = row.get("best", "")
        return {
            "kernel": row["name"],
            "kind": row["kind"],
            "ours": _time(row["ours_s"]),
            "best other": f"{best} {_time(row[f'{best}_s'])}" if best else "",
            "ratio": _ratio(row),
            "wall": f"{row['wall_s']:.0f} s",
        }

    @staticmethod
    def notes(table: Rows) -> list[str]:
        lines = [f"{row['name']}: {row['reason']}" for row in table if row["reason"]]
        absent = (
            (row["name"], package, why) for row in table for package, why in row.get("absent", {}).items()
        )
        return lines + [f"{name}: {package}: {why}" for name, package, why in absent]


def told(found: Mapping[str, Any], competitors: Mapping[str, str]) -> dict[str, Any]:
    """What retrieval says of a kernel. competitors: as they were named to it, by package."""
    row: dict[str, Any] = {
        "verified": found["verified"],
        "baseline": found["baseline"]["name"],
        "kept_baseline": found["kept_baseline"],
        "nests": len(found["nests"]),
        "tuned_nests": sum(nest["accepted"] is not None for nest in found["nests"]),
        f"{AUTO}_s": found["baseline"]["runtime_s"],
        f"vs_{AUTO}": found["speedup"],
        f"vs_{AUTO}_interval": found["speedup_interval"],
        "absent": {},
        "failures": [] if found["verified"] else [f"{found['kernel']}: {found['note'] or 'not verified'}"],
        "reason": _reason(found),
    }
    packages = {named: package for package, named in competitors.items()}
    for other in found["beside"]:
        package = packages[other["library"]]
        row[f"{package}_s"] = other["timing"] and other["timing"]["runtime_s"]
        row[f"vs_{package}"], row[f"vs_{package}_interval"] = other["speedup"], other["speedup_interval"]
        if other["status"] != "ok":
            row["absent"][package] = f"{other['status']}: {other['detail']}"
        if other["status"] == "wrong_result":
            row["failures"].append(f"{found['kernel']}: {package} computes something else: {other['detail']}")
    ratios = {name: row[f"vs_{name}"] for name in (AUTO, *packages.values()) if row.get(f"vs_{name}")}
    best = min(ratios, key=lambda name: ratios[name])
    row |= {"best": best, "ratio": ratios[best], "ratio_interval": row[f"vs_{best}_interval"]}
    return {**row, "ours_s": row[f"{best}_s"] / row["ratio"]}


def figures(rows: Rows) -> Mapping[str, float]:
    """The headline numbers of rows of one size."""
    found: dict[str, float] = {
        "kernels": len(rows),
        "ran": sum(row["ours_s"] is not None for row in rows),
        "verified": sum(row["verified"] for row in rows),
        "lost": sum(lost(row) for row in rows),
        "wall_s_median": median(row["wall_s"] for row in rows),
    }
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    found |= {"geomean_vs_best": _mean(ratios), "min_vs_best": min(ratios, default=math.nan)}
    over = {name: [row[f"vs_{name}"] for row in rows if row.get(f"vs_{name}")] for name in (AUTO, *PACKAGES)}
    return found | {f"geomean_vs_{name}": _mean(speedups) for name, speedups in over.items()}


def as_markdown(table: Rows) -> str:
    """The figures of each size, then a line for each kernel with a group of columns for each size."""
    by_size = {size: [row for row in table if row["size"] == size] for size in SIZES}
    by_size = {size: rows for size, rows in by_size.items() if rows}
    others = (AUTO, *PACKAGES)
    lines = [
        f"| size | ran | verified | lost | over the best | {' | '.join(others)} | median time |",
        f"|---|{'--:|' * (5 + len(others))}",
    ]
    for size, rows in by_size.items():
        found = figures(rows)
        over = [f"{found[f'geomean_vs_{name}']:.2f}" for name in others]
        best = f"{found['geomean_vs_best']:.2f} ({found['min_vs_best']:.2f})"
        lines.append(
            f"| {size} | {found['ran']} | {found['verified']} | {found['lost']} | {best} | "
            f"{' | '.join(over)} | {found['wall_s_median']:.1f} s |"
        )
    lines += [
        "",
        f"| kernel |{''.join(f' ours, {size} | best | ratio | took |' for size in by_size)}",
        f"|---|{'--:|---|--:|--:|' * len(by_size)}",
    ]
    for kernel in dict.fromkeys(row["kernel"] for row in table):
        line = f"| {kernel} |"
        for rows in by_size.values():
            row = next((row for row in rows if row["kernel"] == kernel), None)
            line += f" {_time(row['ours_s'])} | {row.get('best', '')} | {_ratio(row)} |" if row else " | | |"
            line += f" {row['wall_s']:.0f} s |" if row else " |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def lost(row: Row) -> bool:
    """Whether another is faster beyond noise."""
    return row["ratio"] is not None and row["ratio"] < LOST and row["ratio_interval"][1] < 1.0


def _mean(ratios: Sequence[float]) -> float:
    return geometric_mean(ratios) if ratios else math.nan


def _wall_s(answer: Any) -> float:
    return answer.wall_s - answer.document["stages_s"].get("competitors", 0.0)


def _reason(found: Mapping[str, Any]) -> str:
    """Why nests were left as they are, each reason once; what the whole says comes first."""
    said = [found["note"], *(nest["reason"] for nest in found["nests"] if nest["accepted"] is None)]
    said += [f"{part['part']}: {part['reason']}" for part in found["skipped"]]
    return "; ".join(dict.fromkeys(text for text in said if text))


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds, 3)


def _ratio(row: Row) -> str:
    if row["ratio"] is None:
        return ""
    ends = row["ratio_interval"]
    return f"{row['ratio']:.2f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")
