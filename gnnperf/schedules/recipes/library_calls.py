"""Replace bands that are BLAS routines by calls of OpenBLAS, and emit the calls.

In the scheduled nest a call is still its loops, with `Annotation.library` on the outermost: what it
reads and writes stays visible. Only the emission differs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING

from gnnperf.errors import NotApplicable
from gnnperf.nests.analysis import band, extent, initial_nest, rebuild, stride
from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    equals_number,
    substitute,
)
from gnnperf.schedules.recipes.blas import Axis, Call, MatrixLayout, match
from gnnperf.schedules.recipes.expressions import CTYPES
from gnnperf.schedules.recipes.factorisation import Factorisation, match_factorisation
from gnnperf.schedules.recipes.recipe import Recipe
from gnnperf.schedules.recipes.triangular_solve import Solve, match_solve

if TYPE_CHECKING:
    from gnnperf.schedules.recipes.emit import Emitter

SMALL_CALL = 1 << 18
"""Multiplications below which threads take whole calls rather than parts of one."""
MANY_CALLS = 16
"""Calls that keep the threads of most machines busy without sharing any."""


def library_calls(
    node: Loop, recipe: Recipe, buffers: Mapping[str, Buffer], parallel: bool, around: Mapping[str, int]
) -> tuple[list[Node], list[Node]] | None:
    """(nests that write initial values, the calls), or None where the node is no BLAS routine.

    `parallel`: threads may be used here. `around`: how often what the node is in accesses each buffer.
    """
    if match_factorisation(node, buffers, around):
        return [], [_called(node, parallel)]
    if solve := match_solve(node, buffers, around):
        return [*solve.before], [_called(solve.node, parallel)]
    nest = band(node)
    calls = match(nest, buffers)
    if not calls:
        return None
    (statement,) = nest.statements
    before: list[Node] = []
    init = statement.init
    if init is not None and not _starts_from_zero(calls[0], init):
        before, init = [initial_nest(statement, nest.loops)], None
    nodes = []
    for call in calls:
        nodes.append(_loops(call, init, recipe, parallel))
        init = None  # the next adds to what this one leaves
    return before, nodes


def _starts_from_zero(call: Call, init: Expr) -> bool:
    """Does one call do the whole reduction, so that it can start it as well?"""
    return equals_number(init, 0) and call.k is not None and not call.repeats


def _loops(call: Call, init: Expr | None, recipe: Recipe, parallel: bool) -> Node:
    term = call.term
    value: Expr = Op("mul", (term.left, term.right))
    if term.weight is not None:
        value = Op("mul", (value, term.weight))
    if not equals_number(term.alpha, 1):
        value = Op("mul", (term.alpha, value))
    (loop,) = rebuild(call.loops, (Statement(term.target, value, "add", init),))
    assert isinstance(loop, Loop)
    loop = _called(loop, parallel)
    batch = list(call.batch)
    shared = [i for i, lp in enumerate(batch) if lp.independent]
    if parallel and shared and (call.work <= SMALL_CALL or _count(batch[shared[0] :]) >= MANY_CALLS):
        note = Annotation("parallel", recipe.omp_schedule, recipe.chunk, collapse=len(shared))
        batch[shared[0]] = replace(batch[shared[0]], annotation=note)
    return rebuild([*batch, *call.repeats], (loop,))[0]


def _called(loop: Loop, parallel: bool) -> Loop:
    return replace(loop, annotation=Annotation("parallel" if parallel else "none", library="blas"))


def _count(loops: list[Loop]) -> float:
    return prod(inf if (size := extent(lp)) is None else size for lp in loops)


# --------------------------------------------------------------------------- emission


@cache
def openblas() -> Path:
    """The shared library of scipy-openblas32. Raises NotApplicable where that is not installed.

    Found without importing the package, which would load the library, and start its threads, here.
    """
    spec = find_spec("scipy_openblas32")
    folders = spec.submodule_search_locations if spec else None
    found = sorted(Path(folders[0]).glob("lib/libscipy_openblas*")) if folders else []
    if not found:
        raise NotApplicable("calls of BLAS need the package scipy-openblas32, which is not installed")
    return found[0]


def prelude(nest: LoopNest) -> str:
    """What the emitted calls of a nest call; empty where it has none."""
    return blas_header() if any(lp.annotation and lp.annotation.library for lp in nest.loops()) else ""


def blas_header() -> str:
    """C++ that calls OpenBLAS on the threads of OpenMP. Raises NotApplicable without OpenBLAS."""
    return _BLAS.replace("OPENBLAS_PATH", json.dumps(str(openblas())))


_BLAS = Path(__file__).with_name("blas.hpp").read_text(encoding="utf-8")


def libraries(source: str) -> list[Path]:
    """Shared libraries that emitted code, or code that contains it, opens when it runs."""
    return [openblas()] if "GNNPERF_BLAS" in source else []


def emit_call(emitter: Emitter, loop: Loop) -> None:
    """A loop with `Annotation.library`."""
    share = loop.annotation is not None and loop.annotation.kind == "parallel"
    if factors := match_factorisation(loop, emitter.buffers):
        _emit_factorisation(emitter, factors, share)
        return
    if solve := match_solve(loop, emitter.buffers):
        _emit_solve(emitter, solve, share)
        return
    nest = band(loop)
    (call,) = match(nest, emitter.buffers)
    (statement,) = nest.statements
    assert loop.annotation is not None and not (call.batch or call.repeats)
    dtype = emitter.buffers[call.term.target.buffer].dtype
    scalar = emitter.scalar(dtype)
    first = {lp.iterator: lp.start for lp in call.loops}

    def at(load: Load) -> str:
        return "&" + scalar.text(substitute(load, first))

    def length(axis: Axis | None) -> str:
        assert axis is not None
        return emitter.index(axis.length)

    def step(axis: Axis | None, operand: int) -> str:
        assert axis is not None
        return str(axis.steps[operand])

    def matrix(load: Load, layout: MatrixLayout) -> list[str]:
        return [at(load), str(layout.leading)]

    target, left, right = call.term.operands
    threads = _text(share)
    alpha = scalar.text(call.term.alpha)
    m, n, k = call.m, call.n, call.k
    if call.routine == "gemm" and call.is_symmetric and statement.init is not None:
        a, _, c = call.layouts
        weight = call.term.weight
        weights = ["nullptr", "0"]
        if weight is not None:
            assert k is not None
            weights = [at(weight), str(stride(weight, k.loops[0].iterator, emitter.buffers))]
        arguments = [threads, _text(a.transposed), length(m), length(k), alpha, *matrix(left, a), *weights]
        emitter.line(f"gp_gram<{CTYPES[dtype]}>({', '.join([*arguments, *matrix(target, c)])});")
        return
    if call.routine == "gemm":
        a, b, c = call.layouts
        arguments = [
            *(threads, _text(a.transposed), _text(b.transposed), length(m), length(n), length(k), alpha),
            *(
                *matrix(left, a),
                *matrix(right, b),
                "1" if statement.init is None else "0",
                *matrix(target, c),
            ),
        ]
    elif call.routine == "gemv":
        (a,) = call.layouts
        clear = _text(statement.init is not None)
        arguments = [
            *(threads, _text(a.transposed), length(m), length(k), alpha, *matrix(left, a)),
            *(at(right), step(k, 2), clear, at(target), step(m, 0)),
        ]
    elif call.routine == "ger":
        (a,) = call.layouts
        arguments = [
            *(threads, length(m), length(n), alpha, at(left), step(m, 1), at(right), step(n, 2)),
            *matrix(target, a),
        ]
    else:
        arguments = [threads, length(k), at(left), step(k, 1), at(right), step(k, 2)]
    text = f"gp_{call.routine}<{CTYPES[dtype]}>({', '.join(arguments)})"
    if call.routine == "dot":
        sign = "+=" if statement.init is None else "="
        text = f"{scalar.text(target)} {sign} {alpha} * {text}"
    emitter.line(f"{text};")


def _emit_solve(emitter: Emitter, solve: Solve, share: bool) -> None:
    dtype = emitter.buffers[solve.x.buffer].dtype
    scalar = emitter.scalar(dtype)
    arguments = [
        *map(_text, (share, solve.right, solve.upper, solve.transposed != solve.right, solve.unit)),
        *map(emitter.index, (solve.rows, solve.columns)),
        *("&" + scalar.text(solve.a), str(solve.a_step), "&" + scalar.text(solve.x), str(solve.x_step)),
    ]
    emitter.line(f"gp_trsm<{CTYPES[dtype]}>({', '.join(arguments)});")


def _emit_factorisation(emitter: Emitter, found: Factorisation, share: bool) -> None:
    dtype = emitter.buffers[found.target.buffer].dtype
    scalar = emitter.scalar(dtype)
    target = ["&" + scalar.text(found.target), str(found.target_step)]
    routine = "potrf" if found.is_cholesky else "getrf"
    flags = [_text(share), _text(found.kind in ("upper", "unit upper")), str(found.rows)]
    if found.source.buffer != found.target.buffer:
        source = ["&" + scalar.text(found.source), str(found.source_step)]
        part = "GP_ALL" if not found.is_cholesky else "GP_UPPER" if found.kind == "upper" else "GP_LOWER"
        arguments = [flags[0], part, flags[2], *source, *target]
        emitter.line(f"gp_copy_part<{CTYPES[dtype]}>({', '.join(arguments)});")
    emitter.line(f"gp_{routine}<{CTYPES[dtype]}>({', '.join([*flags, *target])});")


def _text(flag: bool) -> str:
    return "true" if flag else "false"
