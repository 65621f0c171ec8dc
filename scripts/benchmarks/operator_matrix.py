"""`gnnperf retrieve` on operators as TVM's users make them: each tuned, or kept for a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.machine import setup
from benchmarks.options import chosen, kernels_option
from benchmarks.retrieving import retrieve
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import ANY_PATH
from gnnperf.cli.output import Report, Verb
from gnnperf.report.words import duration

OPERATORS = Path(__file__).with_name("kernels") / "operators.py"
"""Its `OPERATORS` lists name, kind and way of making."""


@click.command("operator-matrix", cls=Verb, page=True)
@kernels_option
@click.option(
    "-k", default=4, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per task."
)
@click.option("--markdown", type=ANY_PATH, metavar="FILE", help="Write the table as Markdown, too.")
@output_option
def operator_matrix(kernels: tuple[str, ...], k: int, markdown: Path | None, output: Path | None) -> Report:
    """`gnnperf retrieve` on operators as TVM's users make them: each tuned, or kept for a reason.

    Every operator of scripts/benchmarks/kernels/operators.py, made with topi, te, TVMScript, relax or torch,
    runs in a process of its own, with the released store and an empty store of the user's; about an hour.
    Exit code 1: an operator has no answer, is left untuned without a reason, or has a task whose candidates
    all fail.
    """
    known = operators()
    report = OperatorStudy({name: known[name] for name in chosen(known, kernels)}, k).run(output)
    if markdown is not None:
        markdown.write_text(as_markdown(report.document["rows"]), encoding="utf-8")
    return report


def operators() -> Mapping[str, tuple[str, str]]:
    """Kind, and way of making, by name."""
    from gnnperf.frontends.tvm.fast_import import import_tvm

    import_tvm(without_torch=True)
    from benchmarks.kernels.operators import OPERATORS

    return OPERATORS


@dataclass(frozen=True)
class OperatorStudy(Study):
    """operators: kind and way of making, by name. k: candidates per task.

    Of a row, decision is "tuned", "kept" (candidates were measured, none won), "left" (none was measured) or
    "failed" (no answer); failing: tasks of which every candidate failed.
    """

    name = "operator-matrix"
    key = "operator"

    operators: Mapping[str, tuple[str, str]]
    k: int = 4

    def settings(self) -> Mapping[str, Any]:
        return {**setup("apache-tvm", "torch"), "k": self.k}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {name: partial(self.row, name) for name in self.operators}

    def row(self, name: str, say: Say) -> Row:
        """Retrieve for one operator."""
        kind, way = self.operators[name]
        answer = retrieve(f"{OPERATORS}:{name}", {}, None, self.k)
        row = {"operator": name, "kind": kind, "made with": way, "wall_s": answer.wall_s}
        row |= told(answer.document) if answer.document else {**_NOTHING, "reason": answer.error}
        return {**row, "failures": [f"{name}: {fault}" for fault in faults(row)]}

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """`operators`, how many of them were `tuned`, and `all_failed`: have a task whose candidates all
        fail."""
        return {
            "operators": len(table),
            "tuned": sum(row["decision"] == "tuned" for row in table),
            "all_failed": sum(bool(row["failing"]) for row in table),
        }

    @staticmethod
    def shown(row: Row) -> Row:
        speedup = row["speedup"] if row["decision"] == "tuned" else None
        return {
            "operator": row["operator"],
            "kind": row["kind"],
            "made with": row["made with"],
            "tasks": row["tasks"],
            "untuned": "" if row["baseline_s"] is None else duration(row["baseline_s"]),
            "tuned": duration(row["tuned_s"]) if speedup else "",
            "speedup": f"{speedup:.1f}x" if speedup else row["decision"],
        }

    @staticmethod
    def notes(table: Rows) -> list[str]:
        return [f"{row['operator']}: {row['reason']}" for row in table if row["reason"]]


_NOTHING: Mapping[str, Any] = {
    "tasks": 0, "tuned_tasks": 0, "baseline_s": None, "tuned_s": None, "speedup": None,
    "speedup_interval": None, "decision": "failed", "candidates_measured": 0, "failing": [],
}  # fmt: skip


def told(found: Mapping[str, Any]) -> dict[str, Any]:
    """What retrieval says of an operator. found: the document of `gnnperf retrieve --json`."""
    nests = found["nests"]
    untuned = "kept" if found["candidates_measured"] else "left"
    reasons = [nest["reason"] for nest in nests if nest["accepted"] is None and nest["reason"]]
    reasons += [part["reason"] for part in found["skipped"]]
    if found["kept_baseline"] and not reasons:
        reasons = [found["note"]]
    return {
        "tasks": len(nests) + len(found["skipped"]),
        "tuned_tasks": sum(nest["accepted"] is not None for nest in nests),
        "baseline_s": found["baseline"]["runtime_s"],
        "tuned_s": found["tuned"]["runtime_s"],
        "speedup": found["speedup"],
        "speedup_interval": found["speedup_interval"],
        "decision": untuned if found["kept_baseline"] else "tuned",
        "candidates_measured": found["candidates_measured"],
        "failing": [nest["name"] for nest in nests if _all_failed(nest)],
        "reason": "; ".join(dict.fromkeys(reasons)),
    }


def _all_failed(nest: Mapping[str, Any]) -> bool:
    statuses = {tried["status"] for tried in nest["candidates"]} - {"not_measured"}
    return bool(statuses) and "ok" not in statuses


def faults(row: Row) -> list[str]:
    """What must not be."""
    if row["decision"] == "failed":
        return [f"no answer: {row['reason']}"]
    said = [f"every candidate of {task} failed: {row['reason']}" for task in row["failing"]]
    if row["decision"] != "tuned" and not row["reason"]:
        said.append("left untuned without a reason")
    return said


def as_markdown(table: Rows) -> str:
    """A table with a line for each row; why an operator was not tuned is in the last column."""
    lines = ["| operator | kind | made with | untuned | tuned | speedup |", "|---|---|---|--:|--:|---|"]
    for row in table:
        shown = OperatorStudy.shown(row)
        if row["decision"] != "tuned":
            shown = {**shown, "speedup": f"{row['decision']}: {row['reason']}"}
        cells = [shown[name] for name in ("operator", "kind", "made with", "untuned", "tuned", "speedup")]
        lines.append(f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"
