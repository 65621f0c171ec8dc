"""What can be tried on a task: a schedule of it, its trace, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.graph import EncodedGraph, encode
from gnnperf.schedules.traces import TraceDocument, program_key, trace_document
from gnnperf.schedules.traces.sketches import anchor_tiles, sketch_of

KIND = "trace"
"""Of the store's schedules that this package reads and writes."""


@dataclass(frozen=True, eq=False)
class TraceCandidate:
    """A schedule to try. make: gives it. document: its trace. key: the same for schedules that come to the
    same program. policy: how its tiles were decided. neighbour, neighbour_kernel, distance: whose trace it
    was. turn: its place in an order by neighbours alone: the nearest ones' fastest traces first, in their
    most faithful form. encoded: the scheduled graph, where it is there already."""

    make: Callable[[], Any]
    document: TraceDocument
    key: int
    policy: str
    neighbour: str
    neighbour_kernel: str
    distance: float
    turn: int = 0
    encoded: EncodedGraph | None = None
    score: float = 0.0

    @cached_property
    def schedule(self) -> Any:
        """A `tvm.s_tir.Schedule` of the task's module. Raises NotApplicable."""
        return self.make()

    @cached_property
    def program(self) -> Any:
        """The scheduled IRModule as it is compiled, with exponentials that run in vectors."""
        return vector_math(self.schedule.mod)

    @cached_property
    def graph(self) -> EncodedGraph:
        """The scheduled graph. Raises UnsupportedConstruct where the IR lacks what the schedule does."""
        return encode(scheduled_graph(self.schedule.mod)) if self.encoded is None else self.encoded

    @property
    def has_graph(self) -> bool:
        """Whether `graph` is there."""
        try:
            return self.graph is not None
        except UnsupportedConstruct:
            return False

    @property
    def words(self) -> str:
        """For people."""
        return f"{describe(self.document)} ({self.policy})"


def of_schedule(schedule: Any, module: Any, target: Any, **about: Any) -> TraceCandidate:
    """The candidate that a schedule of a module is. about: the candidate's other fields."""
    document, key = trace_document(schedule, module, target), program_key(schedule.mod)
    return TraceCandidate(lambda: schedule, document, key, **about)


def describe(document: TraceDocument) -> str:
    """Tiles of the loops around the anchor and how far is unrolled, in a few words."""
    sketch = sketch_of(document)
    tiles = " ".join("x".join(map(str, t.factors)) for t in anchor_tiles(document))
    words = [sketch.structure or ("tiles" if tiles else "loops fused"), tiles]
    if sketch.factored:
        words.append("reduction split")
    if sketch.write_level is not None:
        words.append(f"written at level {sketch.write_level}")
    if steps := unrolled(document):
        words.append(f"unrolled up to {steps}")
    return " ".join(filter(None, words))


def unrolled(document: TraceDocument) -> int:
    """How far loops are unrolled, in steps."""
    values: dict[str, int] = {}
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if kind == "SampleCategorical" and position in document.decisions:
            values[outputs[0]] = int(attributes[0][document.decisions[position]])
        elif kind == "Annotate" and attributes[0].startswith("meta_schedule.unroll"):
            return values.get(inputs[1], 0) if isinstance(inputs[1], str) else int(inputs[1])
    return 0
