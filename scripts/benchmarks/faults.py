"""Ten thousand injected faults: what is lost, wrongly accepted, executed, hangs, or is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.fault_kinds import KINDS, Kind
from benchmarks.fault_kinds.injecting import FIGURES, inject
from benchmarks.machine import setup
from benchmarks.options import chosen, listed
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb

BATCH = 250
"""Faults of a row, which one process injects one after the other."""


@dataclass(frozen=True)
class FaultStudy(Study):
    """count: of faults, of all kinds together. only: kinds; all without one."""

    name = "faults"
    key = "batch"

    count: int
    seed: int
    only: tuple[str, ...] = ()

    def settings(self) -> Mapping[str, Any]:
        return {**setup("lancedb", "torch"), "seed": self.seed, "count": self.count}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        batches: dict[str, Callable[[Say], Row]] = {}
        for name, kind in KINDS.items():
            wanted = shares(self.count)[name]
            for first in range(0, 0 if self.only and name not in self.only else wanted, BATCH):
                numbers = range(first, min(wanted, first + BATCH))
                batches[f"{name} {numbers[0]}-{numbers[-1]}"] = partial(self._batch, name, kind, numbers)
        return batches

    def _batch(self, name: str, kind: Kind, numbers: range, say: Say) -> Row:
        say(f"{len(numbers)} faults")
        return {
            "batch": f"{name} {numbers[0]}-{numbers[-1]}",
            "kind": name,
            **inject(f"benchmarks.fault_kinds.{kind.module}", kind.function, f"{self.seed} {name}", numbers),
        }

    def table(self, measured: Mapping[str, Row]) -> Rows:
        rows: list[Row] = []
        for name, kind in KINDS.items():
            mine = [row for row in measured.values() if row.get("kind") == name]
            if mine:
                figures = {figure: sum(row[figure] for row in mine) for figure in FIGURES}
                outcomes = {
                    word: sum(row["outcomes"].get(word, 0) for row in mine)
                    for word in sorted({word for row in mine for word in row["outcomes"]})
                }
                rows.append({"kind": name, **figures, "outcomes": outcomes, "checked": kind.checked})
        return rows

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        return {name: sum(row[name] for row in table) for name in FIGURES}

    @staticmethod
    def shown(row: Row) -> Row:
        outcomes = ", ".join(f"{count} {word}" for word, count in row["outcomes"].items())
        return {"kind": row["kind"], **{name: row[name] for name in FIGURES}, "outcomes": outcomes}

    @staticmethod
    def notes(table: Rows) -> Iterable[str]:
        return [f"{row['kind']}: {row['checked']}" for row in table]


def shares(count: int) -> dict[str, int]:
    """How many faults of each kind, out of `count`: at least one."""
    total = sum(kind.share for kind in KINDS.values())
    return {name: max(1, round(count * kind.share / total)) for name, kind in KINDS.items()}


def _kinds(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(chosen(KINDS, listed(ctx, param, value), "--only"))


@click.command("faults", cls=Verb, page=True)
@click.option(
    "--count",
    metavar="N",
    default=10_500,
    show_default=True,
    type=click.IntRange(1, 10_000_000),
    help="Faults, of all kinds together.",
)
@click.option(
    "--seed",
    metavar="S",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Equal seeds inject equal faults, but for their moments.",
)
@click.option("--only", metavar="KIND,...", callback=_kinds, help="These kinds only, as `graphs`.")
@output_option
def faults(count: int, seed: int, only: tuple[str, ...], output: Path | None) -> Report:
    """Ten thousand injected faults: what is lost, wrongly accepted, executed, hangs, or is left behind.

    Writers are killed, disks are full, files are cut short and have bits flipped, strangers write records,
    graphs, schedules and descriptions, candidates crash, hang and write where they must not, Ctrl-C is
    pressed, and two of everything run at once. Exit code 1: anything of that did harm; the row says which
    fault of which kind.
    """
    return FaultStudy(count, seed, only).run(output)
