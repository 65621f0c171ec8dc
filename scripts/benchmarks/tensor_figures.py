"""How fast TVM schedules become program graphs, and traces become schedules of other shapes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.machine import setup
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb
from gnnperf.frontends.tvm import TvmTask, scheduled_graph, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import prim_func
from gnnperf.graph import encode
from gnnperf.schedules.traces import trace_document, transfer

WANTED = 300.0
"""Graphs a second of a tiled product, at least."""
GRAPHS: dict[str, dict[str, Any]] = {
    "matmul": {"m": 512, "n": 512, "k": 512},
    "conv2d": {"h": 56, "w": 56, "ci": 64, "co": 64, "kernel": 3, "padding": 1},
    "softmax": {"m": 256, "n": 1024},
}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "500 x 500 x 500": ("matmul", {"m": 500, "n": 500, "k": 500}),
    "batched 12 x 128 x 64": ("batch_matmul", {"batch": 12, "m": 128, "n": 64, "k": 128}),
    "conv2d 28 x 28 x 128": ("conv2d", {"h": 28, "w": 28, "ci": 128, "co": 128, "kernel": 3, "padding": 1}),
}


def rules_for(task: TvmTask) -> Any:
    """MetaSchedule's rules for CPUs on a task. The processor is any with AVX2: nothing is compiled."""
    from tvm.s_tir import meta_schedule
    from tvm.target import Target

    return meta_schedule.TuneContext(
        mod=task.module,
        target=Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2}),
        space_generator="post-order-apply",
        search_strategy="evolutionary",
        num_threads=1,
    )


def sampled(context: Any, count: int) -> list[Any]:
    """Random schedules that pass post-processing."""
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    designs = context.generate_design_space()
    found: list[Any] = []
    for seed in range(1, 20 * count):
        schedule = Schedule(context.mod, seed=seed)
        Trace(designs[seed % len(designs)].trace.insts, {}).apply_to_schedule(schedule, remove_postproc=True)
        schedule.enter_postproc()
        if all(p.apply(schedule) for p in context.space_generator.postprocs):
            found.append(schedule)
        if len(found) == count:
            break
    return found


def per_second(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    """Items a second of CPU time, the best of three passes."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        for item in items:
            work(item)
        best = min(best, time.process_time() - started)
    return len(items) / best


def row_of_graphs(kind: str, count: int, say: Say) -> Row:
    """Of an operator's random schedules."""
    (task,) = tasks_of(prim_func(kind, GRAPHS[kind]), kind)
    modules = [schedule.mod for schedule in sampled(rules_for(task), count)]
    graphs = [scheduled_graph(module) for module in modules]
    speed = per_second(scheduled_graph, modules)
    slow = kind == "matmul" and speed < WANTED
    return {
        "what": f"graphs of {kind}",
        "per_second": speed,
        "encoded_per_second": per_second(lambda module: encode(scheduled_graph(module)), modules),
        "nodes": sum(len(graph.nodes) for graph in graphs) / len(graphs),
        "schedules": len(modules),
        "failures": [f"graphs of {kind}: expected {WANTED:g} a second, got {speed:.0f}"] if slow else [],
    }


def row_of_proposals(shape: str, say: Say) -> Row:
    """Of traces of a product 512^3 as schedules of another shape."""
    (source,) = tasks_of(prim_func("matmul", GRAPHS["matmul"]), "matmul")
    made = rules_for(source)
    documents = [trace_document(s, source.module, made.target) for s in sampled(made, 4)]
    kind, parameters = SHAPES[shape]
    (task,) = tasks_of(prim_func(kind, parameters), kind)
    context = rules_for(task)
    started = time.process_time()
    found = [proposal for document in documents for proposal in transfer(document, context, 4)]
    return {
        "what": f"proposals for {shape}",
        "per_second": len(found) / (time.process_time() - started),
        "encoded_per_second": None,
        "nodes": None,
        "schedules": len(found),
        "failures": [],
    }


@dataclass(frozen=True)
class TensorFiguresStudy(Study):
    """schedules: random ones per operator."""

    name = "tensor-figures"
    key = "what"

    schedules: int

    def settings(self) -> Mapping[str, Any]:
        return {**setup("apache-tvm"), "schedules": self.schedules}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {
            **{f"graphs of {kind}": partial(row_of_graphs, kind, self.schedules) for kind in GRAPHS},
            **{f"proposals for {shape}": partial(row_of_proposals, shape) for shape in SHAPES},
        }

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        return {f"{row['what']} [1/s]": row["per_second"] for row in table if "per_second" in row}

    @staticmethod
    def shown(row: Row) -> Row:
        names = {"per_second": "a second", "encoded_per_second": "with encoding", "nodes": "nodes"}
        cells = {shown: None if row.get(name) is None else round(row[name]) for name, shown in names.items()}
        return {"what": row["what"], **cells, "schedules": row.get("schedules")}


@click.command("tensor-figures", cls=Verb, page=True)
@click.option(
    "--schedules", default=60, show_default=True, type=click.IntRange(1), help="Random ones per operator."
)
@output_option
def tensor_figures(schedules: int, output: Path | None) -> Report:
    """How fast TVM schedules become program graphs, and traces become schedules of other shapes.

    Graphs: scheduled program graphs a second, of random schedules from MetaSchedule's space, in CPU time;
    with encoding: as arrays for the network. Proposals: schedules a second from traces of a product 512^3,
    for other shapes and other operators. Under a minute on one core. Exit code 1: fewer than 300 graphs a
    second of a product.
    """
    import_tvm()
    return TensorFiguresStudy(schedules).run(output)
