"""Problems of TVM functions: arrays by the place of the parameter, `x0`, `x1`, ..., and the last as `OUTPUT`.

What a function writes is a result; where it reads that too, it is an input as well, with values of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.tvm.kernel import Kernel
from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm.blocks import has_root
from gnnperf.frontends.tvm.tasks import uses_of
from gnnperf.frontends.tvm.translate import TirProgram, translate
from gnnperf.measure.problem import OUTPUT, Arrays, Problem, random_inputs
from gnnperf.measure.verification import is_inexact
from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.ir import Expr, Load, Loop, Op, expressions_of, loads, subexpressions, symbols, walk

Kind = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and type of an array."""


def solved(module: Any, kernel: Kernel, seed: int = 0) -> Problem:
    """The problem of an unscheduled module, which `kernel` was built from, on random inputs: where these give
    no number at all (of a logarithm that is added up, say), on positive ones."""
    results = {name: np.empty(*kind) for name, kind in result_kinds(module).items()}

    def of(inputs: Arrays) -> Problem:
        return Problem.solved(
            inputs,
            lambda given: computed(kernel, _arguments(given, results), [*results]),
            reduction_length(module),
        )

    problem = of(inputs := made_inputs(module, seed))
    if any(is_inexact(x.dtype) and not np.isfinite(x).any() for x in problem.reference.values()):
        return of(positive(inputs))
    return problem


def positive(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Inputs without the signs of real numbers."""
    return {name: np.abs(x) if is_inexact(x.dtype) else x for name, x in inputs.items()}


def is_positive(inputs: Mapping[str, NDArray[Any]]) -> bool:
    """Whether `positive` changes nothing."""
    return all((x >= 0).all() for x in inputs.values() if is_inexact(x.dtype))


def made_inputs(module: Any, seed: int) -> dict[str, NDArray[Any]]:
    """Random inputs of a module by name: what is used as an index is one."""
    read = [n for n, use in enumerate(uses_of(module["main"])) if use.read]
    kinds = signature(module)
    made = [*random_inputs(kinds[: read[-1] + 1] if read else [], seed, _index_ends(module["main"])).values()]
    return {_name(n, len(kinds)): made[n] for n in read}


def result_kinds(module: Any) -> dict[str, Kind]:
    """Shape and type of everything that a module writes, by name."""
    kinds = signature(module)
    return {_name(n, len(kinds)): kinds[n] for n, use in enumerate(uses_of(module["main"])) if use.written}


def _name(place: int, count: int) -> str:
    return OUTPUT if place == count - 1 else f"x{place}"


def _place(name: str) -> int:
    """In a list of all arguments."""
    return -1 if name == OUTPUT else int(name[1:])


def _index_ends(function: Any) -> dict[int, int]:
    """By place of the parameters that hold indices, the least extent of what they index, or of what the
    indices go through that they are compared with."""
    try:
        program = translate(function)
    except UnsupportedConstruct:  # then nothing runs it
        return {}
    ends: dict[int, int] = {}
    ranges: dict[str, tuple[int, int]] = {}
    for node in walk(program.body):
        if isinstance(node, Loop):
            first, stop = constant(node.start), constant(node.stop)
            if first is not None and stop is not None:
                ranges[node.iterator] = (first, stop - 1)
            continue
        for part in (part for whole in expressions_of(node) for part in subexpressions(whole)):
            for index, end in (*_indexed(part, program), *_compared(part, ranges)):
                if index.buffer in program.parameters:
                    place = program.parameters.index(index.buffer)
                    ends[place] = min(end, ends.get(place, end))
    return ends


def _indexed(expr: Expr, program: TirProgram) -> Iterator[tuple[Load, int]]:
    """Of a load, the indices that are loaded, with the extent of what they index."""
    if isinstance(expr, Load):
        for index, extent in zip(expr.indices, program.buffers[expr.buffer].shape, strict=True):
            if isinstance(extent, int):
                yield from ((inner, extent) for inner in loads(index))


def _compared(expr: Expr, ranges: Mapping[str, tuple[int, int]]) -> Iterator[tuple[Load, int]]:
    """Of a comparison, an element that has to be one of the values of loops, with the end of these: of all
    integers, hardly any is. ranges: by iterator, its lowest and highest value."""
    if isinstance(expr, Op) and expr.name in ("eq", "ne"):
        for one, other in (expr.args, expr.args[::-1]):
            element, reach = simplify(one), affine(other).reach(ranges) if symbols(other) else None
            if isinstance(element, Load) and reach is not None and reach[1] >= 0:
                yield element, reach[1] + 1


def signature(module: Any) -> list[Kind]:
    """Shape and type of every parameter."""
    buffers = module["main"].params
    return [(tuple(int(extent) for extent in b.shape), np.dtype(str(b.dtype))) for b in buffers]


def arguments(problem: Problem) -> list[Any]:
    """Tensors for all parameters: with the inputs, and for results that are none."""
    return _arguments(problem.inputs, problem.reference)


def renewed(problem: Problem, given: Sequence[Any]) -> list[Any]:
    """Such arguments again, with the same tensors but for results."""
    results = {_place(name) % len(given) for name in problem.reference}
    new = _arguments({n: x for n, x in problem.inputs.items() if n in problem.reference}, problem.reference)
    anew = dict(zip(sorted(results), new, strict=True))
    return [anew.get(n, tensor) for n, tensor in enumerate(given)]


def _arguments(inputs: Arrays, results: Arrays) -> list[Any]:
    names = sorted({**inputs, **results}, key=lambda name: (name == OUTPUT, _place(name)))
    return [tensors([inputs[n]])[0] if n in inputs else poisoned(results[n]) for n in names]


def tensors(arrays: Iterable[NDArray[Any]]) -> list[Any]:
    """Tensors of TVM on the CPU."""
    import tvm

    return [tvm.runtime.tensor(array) for array in arrays]


def poisoned(like: NDArray[Any]) -> Any:
    """A tensor of NaN or of bytes of ones."""
    array = np.frombuffer(b"\xff" * like.nbytes, like.dtype).reshape(like.shape)
    return tensors([array])[0]


def example_problem(program: Any, reduction_length: int) -> Problem:
    """What PyTorch makes of the example inputs that a `torch.export.ExportedProgram` has: arrays `0`, `1`,
    ..., results as `named_results` calls them. Raises what PyTorch raises."""
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    from gnnperf.nn.threads import one_thread

    given, structure = tree_flatten(program.example_inputs)
    module = program.module()

    def solve(arrays: Mapping[str, Any]) -> Arrays:
        copies = [_tensor(array) for array in arrays.values()]  # the program may write to its inputs
        positional, named = tree_unflatten(copies, structure)
        with one_thread(), torch.no_grad():
            return named_results(tree_flatten(module(*positional, **named))[0])

    inputs = {str(n): _array(tensor) for n, tensor in enumerate(given)}
    graphs = [part.graph for part in module.modules() if hasattr(part, "graph")]  # autocast is one of its own
    nodes = [node for graph in graphs for node in graph.nodes]
    values = [value for node in nodes for value in tree_flatten(node.meta.get("val"))[0]]
    floats = {v.dtype for v in values if isinstance(v, torch.Tensor) and v.dtype.is_floating_point}
    rounding = max((torch.finfo(dtype).eps for dtype in floats), default=0.0)
    return Problem.solved(inputs, solve, reduction_length, rounding)


def run_model(model: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The result, or a tuple of them, as torch tensors, of a program as it is written (`program_output`) on
    what its module is called with. Raises TypeError where that is of another dtype or shape."""
    from torch.utils._pytree import tree_flatten

    results = tuple(map(_tensor, model(*map(_array, tree_flatten(((*positional,), {**named}))[0]))))
    return results[0] if len(results) == 1 else results


def named_results(found: Any) -> Arrays:
    """Tensors of TVM or PyTorch, one or several, as contiguous arrays by their place."""
    results = [found] if hasattr(found, "numpy") else found
    return {f"result {n}": _array(result) for n, result in enumerate(results)}


def _array(tensor: Any) -> NDArray[Any]:
    """In C's order. NumPy has bfloat16 once TVM has brought it; PyTorch does not hand it over as such."""
    if hasattr(tensor, "detach"):
        import torch

        tensor = tensor.detach()
        if tensor.dtype == torch.bfloat16:
            return np.asarray(tensor.view(torch.int16).numpy(), order="C").view("bfloat16")
    return np.asarray(tensor.numpy() if hasattr(tensor, "numpy") else tensor, order="C")


def _tensor(array: NDArray[Any]) -> Any:
    """A copy, as PyTorch has it."""
    import torch

    copy = np.array(array)
    if copy.dtype.name == "bfloat16":
        return torch.from_numpy(copy.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(copy)


def computed(kernel: Kernel, arguments: Sequence[Any], results: Iterable[str] = (OUTPUT,)) -> Arrays:
    """Results of one run, by name."""
    kernel.run(arguments)
    return {name: arguments[_place(name)].numpy() for name in results}


def reduction_length(module: Any) -> int:
    """The longest sum in the function: the largest product of the reduction extents of a block; 1 where its
    loops are not around blocks."""
    from tvm.s_tir import Schedule
    from tvm.tirx import IterVar

    if not has_root(module["main"]):
        return 1
    schedule, longest = Schedule(module), 1
    for handle in schedule.get_child_blocks(schedule.get_sblock("root")):
        variables = schedule.get(handle).iter_vars
        extents = [int(v.dom.extent) for v in variables if v.iter_type == IterVar.CommReduce]
        longest = max(longest, math.prod(extents))
    return longest
