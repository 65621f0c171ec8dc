"""Calls of oneDNN in TVM functions beside PyTorch: products, batched products, convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.options import ready_to_measure
from benchmarks.tvm_in_turn import timed_in_turn, tvm_setup
from gnnperf.backends.tvm.competitors import TORCH
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb

PRODUCTS = (
    (256, 256, 256, "nn"), (512, 512, 512, "nn"), (1024, 1024, 1024, "nn"), (384, 512, 640, "nt"),
    (512, 512, 512, "tn"), (128, 768, 768, "nt"), (128, 3072, 768, "nt"), (128, 768, 3072, "nt"),
    (512, 768, 768, "nt"), (96, 1280, 768, "nt"),
)  # fmt: skip
"""m, n, k, layout: squares, and layers of transformers."""
BATCHED = ((12, 128, 128, 64, "nt"), (8, 256, 256, 64, "nt"))
PICTURES = (
    (56, 64, 64, 3, 1, 1, "NHWC"), (14, 256, 256, 3, 1, 1, "NHWC"), (56, 64, 128, 3, 2, 1, "NHWC"),
    (56, 64, 64, 3, 1, 1, "NCHW"), (28, 128, 128, 3, 1, 1, "NCHW"), (14, 256, 256, 3, 1, 1, "NCHW"),
    (56, 64, 256, 1, 1, 0, "NHWC"), (28, 256, 512, 1, 2, 0, "NHWC"), (56, 64, 256, 1, 1, 0, "NCHW"),
    (14, 1024, 256, 1, 1, 0, "NCHW"), (224, 3, 64, 7, 2, 3, "NCHW"),
)  # fmt: skip
"""Height and width, channels in, out, kernel, stride, padding, layout: layers of ResNets."""
CALL = "call"


@dataclass(frozen=True)
class CallsStudy(Study):
    """See `library_calls`."""

    name = "library-calls"
    key = "workload"

    def settings(self) -> Mapping[str, Any]:
        return tvm_setup("onednn-cpu-gomp")

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        from gnnperf.frontends.tvm.workloads import TvmWorkload

        sizes: list[tuple[str, dict[str, Any]]] = [
            ("matmul", dict(zip(("m", "n", "k", "layout"), one, strict=True))) for one in PRODUCTS
        ]
        sizes += [
            ("batch_matmul", dict(zip(("batch", "m", "n", "k", "layout"), one, strict=True)))
            for one in BATCHED
        ]
        names = ("h", "ci", "co", "kernel", "stride", "padding", "layout")
        found = [dict(zip(names, one, strict=True)) for one in PICTURES]
        sizes += [("conv2d", {"batch": 1, "w": one["h"], **one}) for one in found]
        workloads = [TvmWorkload(kind, params) for kind, params in sizes]
        return {workload.name: partial(self._row, workload) for workload in workloads}

    def _row(self, workload: Any, say: Say) -> Row:
        from gnnperf.backends.tvm.server import BenchServer
        from gnnperf.frontends.tvm import TvmTask
        from gnnperf.measure.interleaved import Pace
        from gnnperf.retrieval.traces.calls import calls_for

        target = ready_to_measure()
        module = workload.build()
        calls = calls_for(TvmTask(workload.name, module), target)
        modules = {CALL: calls[0].program} if calls else {}
        with BenchServer([module], target) as server:
            found = timed_in_turn(server, 0, workload, modules, target, Pace(budget_s=1.0), True)
        ours_s, theirs_s = (found[name].runtime_s if name in found else None for name in (CALL, TORCH))
        row = {"workload": workload.name, "kind": workload.kind, "call_s": ours_s, "torch_s": theirs_s}
        if ours_s is None or theirs_s is None:
            why = "; ".join(f"{name}: {m.status} {m.detail}" for name, m in found.items() if not m.runtime_s)
            return {**row, "speedup_over_torch": None, "failures": [f"{workload.name}: {why or 'no call'}"]}
        return {**row, "speedup_over_torch": theirs_s / ours_s}

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        ratios = [row["speedup_over_torch"] for row in table if row.get("speedup_over_torch")]
        if not ratios:
            return {}
        return {
            "vs_torch_products_convs": math.exp(sum(map(math.log, ratios)) / len(ratios)),
            "min_vs_torch_products_convs": min(ratios),
        }

    @staticmethod
    def shown(row: Row) -> Row:
        return {name: row.get(name) for name in ("workload", "call_s", "torch_s", "speedup_over_torch")}


@click.command("library-calls", cls=Verb, page=True)
@output_option
def library_calls(output: Path | None) -> Report:
    """Calls of oneDNN in TVM functions beside PyTorch: products, batched products, convolutions.

    The call that retrieval tries for each function, verified, and timed in turn with PyTorch's operator on as
    many threads. Exit code 1: one of them is not right.
    """
    return CallsStudy().run(output)
