"""Put tuned functions back into the kernel: an ordinary SDFG that DaCe alone can compile."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dace

from gnnperf.errors import GnnperfError, first_line
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.frontends.dace.state_graph import names_used
from gnnperf.frontends.dace.units import Unit
from gnnperf.schedules.recipes.expressions import CTYPES

if TYPE_CHECKING:
    from gnnperf.frontends.dace.loader import DaceKernel
    from gnnperf.schedules.recipes import CppFunction


@quiet_dace()
def splice(kernel: DaceKernel, functions: Mapping[int, CppFunction]) -> Any:
    """The kernel's SDFG with the units named by index replaced by the given functions.

    A replaced unit becomes one state in which a C++ tasklet calls the function (its source is part of
    the SDFG's global code) on the arrays the unit read and wrote. The result is validated; it can be
    saved, loaded and compiled by DaCe without gnnperf. Raises GnnperfError where it is not valid.
    """
    sdfg = copy.deepcopy(kernel.sdfg)
    originals, copies = list(kernel.sdfg.all_sdfgs_recursive()), list(sdfg.all_sdfgs_recursive())
    pairs = dict(zip(map(id, originals), copies, strict=True))
    units = [(kernel.units[i], functions[i]) for i in sorted(functions)]
    symbols = [f.symbol for _, f in units]
    if len(set(symbols)) < len(symbols):
        raise GnnperfError(f"two of the functions to splice have one name: {', '.join(symbols)}")
    places = []
    for unit, function in units:
        owner = pairs[id(unit.sdfg)]
        places.append((unit, function, owner, [owner.node(unit.sdfg.node_id(s)) for s in unit.states]))
    for unit, function, owner, states in places:
        sdfg.append_global_code(f"\n{function.source}\n")
        _replace(unit, function, owner, states)
    for owner in copies:
        _drop_unused(owner)
    sdfg.openmp_sections = False
    sdfg.reset_cfg_list()
    try:
        sdfg.validate()
    except Exception as error:  # DaCe's validation raises anything
        raise GnnperfError(f"the tuned SDFG is not valid: {first_line(error)}") from error
    return sdfg


def _replace(unit: Unit, function: CppFunction, owner: Any, states: list[Any]) -> None:
    state = owner.add_state(f"tuned_{unit.name}", is_start_block=False)
    _call(unit, function, owner, state)
    for edge in owner.in_edges(states[0]):
        if edge.src not in states:
            owner.add_edge(edge.src, state, edge.data)
    for edge in owner.out_edges(states[-1]):
        if edge.dst not in states:
            owner.add_edge(state, edge.dst, edge.data)
    was_start = owner.start_state in states
    owner.remove_nodes_from(states)
    if was_start:
        owner.start_block = owner.node_id(state)


def _call(unit: Unit, function: CppFunction, owner: Any, state: Any) -> None:
    """A tasklet that calls the function, between read and write access nodes."""
    outputs = set(unit.outputs)
    reads = {n for n in function.buffers if n not in outputs or n in unit.inouts}
    inputs: dict[str, Any] = {}
    results: dict[str, Any] = {}
    before: list[str] = []
    after: list[str] = []
    arguments: list[str] = []
    for name in function.buffers:
        descriptor = owner.arrays[name]
        # The function's own name for the type: DaCe's `char` is no `int8_t`.
        ctype, pointer = CTYPES[unit.nest.buffers[name].dtype], isinstance(descriptor, dace.data.Array)
        kind = dace.pointer(descriptor.dtype) if pointer else descriptor.dtype
        connector = f"_out_{name}" if name in outputs else f"_in_{name}"
        if name in reads:
            inputs[f"_in_{name}"] = kind
        if name in outputs:
            results[f"_out_{name}"] = kind
        if pointer:
            arguments.append(f"({ctype}*)({connector})")
            continue
        # Connectors of scalars are of other types where DaCe has written literals for them.
        before.append(f"{ctype} gp_{name}{f' = _in_{name}' if name in reads else ''};")
        arguments.append(f"&gp_{name}")
        if name in outputs:
            after.append(f"_out_{name} = gp_{name};")
    arguments += [f"(int64_t)({name})" for name in function.parameters]
    code = "\n".join([*before, f"{function.symbol}({', '.join(arguments)});", *after])
    # With side effects: DaCe takes away connectors of results that nobody reads, which the call needs too.
    tasklet = state.add_tasklet(
        function.symbol, inputs, results, code, language=dace.Language.CPP, side_effects=True
    )
    for connector in inputs:
        name = connector.removeprefix("_in_")
        memlet = dace.Memlet.from_array(name, owner.arrays[name])
        state.add_edge(state.add_read(name), None, tasklet, connector, memlet)
    for connector in results:
        name = connector.removeprefix("_out_")
        memlet = dace.Memlet.from_array(name, owner.arrays[name])
        state.add_edge(tasklet, connector, state.add_write(name), None, memlet)


def _drop_unused(sdfg: Any) -> None:
    used = names_used(sdfg, sdfg.nodes())
    for name, descriptor in list(sdfg.arrays.items()):
        if descriptor.transient and name not in used:
            sdfg.remove_data(name, validate=False)
