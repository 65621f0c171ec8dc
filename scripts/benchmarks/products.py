"""Products that are retrieved cold: of floats, and of bytes by tensor instruction."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.machine import setup
from benchmarks.metaschedule import best_of, metaschedule
from benchmarks.options import ready_to_measure
from benchmarks.retrieving import retrieve
from benchmarks.tvm_in_turn import first_candidates
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import InputError, MeasureError

SIZE = 512
FLOAT = f"""
from tvm import te

def product():
    a, b = (te.placeholder(({SIZE}, {SIZE}), name=name) for name in "ab")
    k = te.reduce_axis((0, {SIZE}), name="k")
    return [a, b, te.compute(({SIZE}, {SIZE}), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]
"""
BYTES = {"m": 320, "n": 640, "k": 640}
FIELDS = (
    "wall_s", "runtime_s", "gflop_per_s", "speedup_over_default", "speedup_over_torch", "first_pick",
    "giga_operations_per_s", "without_giga_operations_per_s", "speedup_over_without",
)  # fmt: skip
"""Of every row; None where a product has no such figure."""


@dataclass(frozen=True)
class ProductsStudy(Study):
    """only: one part, "float" or "bytes". k: candidates that are measured. trials: of the search without the
    instruction."""

    name = "products"
    key = "part"

    only: str | None
    k: int
    trials: int

    def settings(self) -> Mapping[str, Any]:
        return {**setup("apache-tvm", "torch"), "candidates": self.k, "trials": self.trials}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        parts = {"float": self.of_floats, "bytes": self.of_bytes}
        return {name: measure for name, measure in parts.items() if self.only in (None, name)}

    def of_floats(self, say: Say) -> Row:
        """A product 512^3 in single precision."""
        say("retrieving")
        with tempfile.TemporaryDirectory(prefix="gnnperf-product-") as folder:
            source = Path(folder) / "product.py"
            source.write_text(FLOAT)
            cold = retrieve(f"{source}:product", {}, None, self.k)
            compared = retrieve(f"{source}:product", {}, None, self.k, ["--beside", "torch"])
        if cold.document is None or compared.document is None:
            raise MeasureError(f"the product was not retrieved: {cold.error or compared.error}")
        (nest,) = compared.document["nests"]
        runtime_s = cold.document["tuned"]["runtime_s"]
        return {
            "part": "float",
            **dict.fromkeys(FIELDS),
            "wall_s": cold.wall_s,
            "runtime_s": runtime_s,
            "gflop_per_s": 2 * SIZE**3 / runtime_s / 1e9,
            "speedup_over_default": cold.document["speedup"],
            "speedup_over_torch": nest["beside"][0]["speedup"],
            "failures": [] if cold.document["verified"] else ["float: the result was not verified"],
        }

    def of_bytes(self, say: Say) -> Row:
        """A product of bytes with packed weights, which the instruction takes."""
        from gnnperf.backends.tvm.server import BenchServer
        from gnnperf.frontends.tvm.workloads import TvmWorkload

        target = ready_to_measure()
        workload = TvmWorkload("matmul_int8", BYTES)
        with BenchServer([workload.build()], target) as server:
            tried = retrieved(server, workload, target, self.k)
            say(f"searching without the instruction, {self.trials} trials")
            plain = searched(server, workload, target, self.trials)
            return {"part": "bytes", **dict.fromkeys(FIELDS), **compared_bytes(server, tried, plain)}

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        return {
            f"{row['part']}_{name}": row[name]
            for row in table
            for name in FIELDS
            if isinstance(row.get(name), float)
        }

    @staticmethod
    def shown(row: Row) -> Row:
        return {"part": row["part"], **{name: row.get(name) for name in FIELDS}}


def retrieved(server: Any, workload: Any, target: Any, k: int) -> list[Any]:
    """(candidate, measurement) of the first k."""
    from gnnperf.frontends.tvm import TvmTask
    from gnnperf.frontends.tvm.program import TvmProgram
    from gnnperf.session import Session

    program = TvmProgram(workload.name, [TvmTask(workload.name, workload.build())], target)
    _, tried = first_candidates(Session(store=False), program, 0, server, k)
    return tried


def searched(server: Any, workload: Any, target: Any, trials: int) -> list[Any]:
    """MetaSchedule's trials with its own rules, which know no tensor instruction."""
    from gnnperf.frontends.tvm.spaces import plain_generator

    measure = partial(server.measure, 0)
    return metaschedule(workload.build(), target, trials, measure, generator=plain_generator())


def compared_bytes(server: Any, tried: list[Any], plain: list[Any]) -> dict[str, Any]:
    """The best of both, in turn."""
    from gnnperf.measure.interleaved import Pace, in_turns
    from gnnperf.schedules.traces.document import sketch_of

    right = [(outcome.runtime_s, n) for n, (_, outcome) in enumerate(tried) if outcome.runtime_s]
    without = best_of(plain)
    if not right or without is None:
        raise MeasureError("no schedule ran right, of retrieval or of the search")
    first, best = tried[0][0], tried[min(right)[1]][0]
    with server.rehearsed(0, [best.program, without.module]) as (_, turns):
        found = in_turns({"ours": turns[1], "plain": turns[2]}, Pace())
    ours_s, plain_s = found["ours"].runtime_s, found["plain"].runtime_s
    assert ours_s is not None and plain_s is not None  # they ran right before
    operations = 2 * BYTES["m"] * BYTES["n"] * BYTES["k"]
    instruction = sketch_of(first.schedule).instruction
    return {
        "first_pick": instruction or "no tensor instruction",
        "giga_operations_per_s": operations / ours_s / 1e9,
        "without_giga_operations_per_s": operations / plain_s / 1e9,
        "speedup_over_without": plain_s / ours_s,
        "failures": [] if instruction else ["bytes: the first pick takes no tensor instruction"],
    }


@click.command("products", cls=Verb, page=True)
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Candidates that are measured."
)
@click.option("--only", type=click.Choice(["float", "bytes"]), help="One part.")
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="Of the search without the instruction.",
)  # fmt: skip
@output_option
def products(k: int, only: str | None, trials: int, output: Path | None) -> Report:
    """Products that are retrieved cold: of floats, and of bytes by tensor instruction.

    Float: `gnnperf retrieve` of a product 512^3 as a process, from nothing to the report, beside PyTorch.
    Bytes: a product of uint8 and int8 that the corpus does not hold: the first schedules of retrieval beside
    the best that MetaSchedule finds without the tensor instruction (AVX-512 VNNI). Exit code 1: a result was
    not verified, or the first pick takes no tensor instruction.
    """
    from gnnperf.frontends.tvm.target import has_vnni

    if only != "float" and not has_vnni():
        raise InputError("expected a CPU with AVX-512 VNNI, and this one lacks it; take --only float")
    return ProductsStudy(only, k, trials).run(output)
