"""Emit rows that wait for those above (`skewed_rows.py`) for threads that have them in turn.

Every thread goes through some rows side by side, and then through those that come after what the other
threads have; in pieces, each when the thread with the rows above is far enough.
"""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING

from gnnperf.nests.blocks import Path
from gnnperf.nests.ir import Loop, LoopNest
from gnnperf.schedules.recipes.expressions import iterator_name
from gnnperf.schedules.recipes.shared_loops import combine_private, declare_private, outlined, private_copies
from gnnperf.schedules.recipes.threads import private_reductions

if TYPE_CHECKING:
    from gnnperf.schedules.recipes.emit import Emitter

_PIPELINE = File(__file__).with_name("pipeline.hpp").read_text(encoding="utf-8")


def pipeline_header(nest: LoopNest) -> str:
    """What the emitted rows of a nest call; empty where it has none."""
    return _PIPELINE if any(_is_pipelined(loop) for loop in nest.loops()) else ""


def emit_rows(emitter: Emitter, loop: Loop, path: Path) -> None:
    """A loop over rows that is annotated "parallel", and holds a "pipelined" one over their elements."""
    steps = next(n for n in loop.body if isinstance(n, Loop) and _is_pipelined(n))
    assert steps.annotation is not None
    row, start = iterator_name(loop.iterator), emitter.index(loop.start)
    count = f"{emitter.index(steps.stop)} - {emitter.index(steps.start)}"
    private = private_reductions(loop, emitter.buffers, emitter.access_counts)
    assert private is not None, "threads cannot share the rows: see share_rows"
    with emitter.braces():
        emitter.line("Pipeline pipeline(omp_get_max_threads());")
        emitter.line(f"#pragma omp parallel{private_copies(emitter, loop)}")
        with emitter.braces():
            declare_private(emitter, private)
            emitter.line(f"Stage stage(pipeline, {count}, {steps.annotation.factor});")
            first, step = f"{start} + {loop.step} * stage.thread", f"{loop.step} * stage.threads"
            test = f"{row} < {emitter.index(loop.stop)}"
            emitter.line(f"for (int64_t {row} = {first}; {test}; {row} += {step}) {{")
            emitter.depth += 1
            emitter.line(f"stage.begin(({row} - {start}) / {loop.step});")
            outlined(emitter, loop.body, path, stage=True)
            emitter.line("stage.finish();")
            emitter.depth -= 1
            emitter.line("}")
            combine_private(emitter, private)


def emit_steps(emitter: Emitter, loop: Loop, path: Path) -> None:
    """The "pipelined" loop over the elements of such rows."""
    name, start = iterator_name(loop.iterator), emitter.index(loop.start)
    emitter.line("for (int64_t from = 0, to; from < stage.steps; from = to) {")
    emitter.depth += 1
    emitter.line("to = stage.next(from);")
    emitter.line(f"for (int64_t {name} = {start} + from; {name} < {start} + to; ++{name}) {{")
    emitter.depth += 1
    emitter.block(loop.body, path)
    emitter.depth -= 1
    emitter.line("}")
    emitter.line("stage.done(to);")
    emitter.depth -= 1
    emitter.line("}")
    emitter.line("stage.wait_for_all();")


def _is_pipelined(loop: Loop) -> bool:
    return loop.annotation is not None and loop.annotation.kind == "pipelined"
