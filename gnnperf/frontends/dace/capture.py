"""The real inputs of every unit, taken from a run of the whole kernel.

Before each unit a tasklet is put in that copies the unit's arrays into extra outputs of the kernel
when the unit runs for the wanted time. A first run counts the executions, a second one takes the
middle execution of each unit. Units that only see what the caller passed need no run.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dace
import numpy as np
from numpy.typing import NDArray

from gnnperf.frontends.dace.codegen import compiled
from gnnperf.frontends.dace.dtypes import dtype_name
from gnnperf.frontends.dace.inputs import aligned, make_dominant
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.frontends.dace.units import Unit
from gnnperf.measure import Compiler, Library, Limits, Runner, is_moderate
from gnnperf.nests.ir import Loop, walk

if TYPE_CHECKING:
    from gnnperf.frontends.dace.loader import DaceKernel

CAPTURED_BYTES = 2 << 30
"""What one run copies at most (or one unit's arrays, if they are larger)."""

LIMITS = Limits(timeout_s=300.0)
"""Of a run of the whole kernel."""

_COUNT, _WANTED, _PARAMETERS = "gnnperf_count", "gnnperf_wanted", "gnnperf_parameters"


def capture_inputs(kernel: DaceKernel, compiler: Compiler, runner: Runner) -> None:
    """Fill `data`, `calls` and the nest's parameters of every unit of the kernel.

    A unit that is never executed, or whose arrays cannot be copied, gets an `objection`.
    Generated matrices with which the kernel overflows are replaced first (see `settle_inputs`).
    Raises BuildError and MeasureError where the kernel does not compile or run.
    """
    settle_inputs(kernel, compiler, runner)
    waiting = []
    for unit in kernel.units:
        if _is_first(kernel, unit):
            unit.calls = 1
            unit.data = {n: _initial(kernel, unit, n) for n in unit.external}
        elif (reason := _obstacle(unit)) is not None:
            unit.objection = reason
        else:
            waiting.append(unit)
    for number, group in enumerate(_groups(waiting)):
        _capture(kernel, group, number, compiler, runner)


def _groups(units: list[Unit]) -> list[list[Unit]]:
    """Units whose arrays are captured in one run: as many as fit into memory."""
    groups: list[list[Unit]] = []
    room = 0
    for unit in units:
        size = sum(
            int(str(d.total_size)) * d.dtype.bytes for d in (unit.sdfg.arrays[n] for n in unit.external)
        )
        if not groups or size > room:
            groups.append([])
            room = CAPTURED_BYTES
        groups[-1].append(unit)
        room -= size
    return groups


def _capture(
    kernel: DaceKernel, waiting: list[Unit], number: int, compiler: Compiler, runner: Runner
) -> None:
    with quiet_dace():
        probe = _Probe(kernel, waiting)
    library = compiled(probe.sdfg, f"{kernel.name}_capture_{number}", compiler)
    captured = probe.run(library, runner, np.zeros(len(waiting)))
    counts = captured[_COUNT]
    if any(c > 1 for c in counts):
        captured = probe.run(library, runner, counts // 2)
    for place, unit in enumerate(waiting):
        unit.calls = int(counts[place])
        if not counts[place]:
            unit.objection = "never executed with these inputs"
            continue
        probe.fill(place, unit, captured)


def _is_first(kernel: DaceKernel, unit: Unit) -> bool:
    """Does the unit read only what the caller passed, before anything has changed it?"""
    if unit.sdfg is not kernel.sdfg or unit.nest.parameters or unit.in_loop:
        return False
    needed = set(unit.external) - (set(unit.outputs) - set(unit.inouts))
    return all(n in kernel.data and n not in unit.written_before for n in needed)


def _initial(kernel: DaceKernel, unit: Unit, name: str) -> Any:
    """What an array holds before the unit: the caller's value, or anything (it is only written)."""
    if name in kernel.data:
        return kernel.data[name]
    descriptor = unit.sdfg.arrays[name]
    shape = tuple(int(s) for s in descriptor.shape)
    return aligned(np.zeros(shape, dtype_name(descriptor.dtype)), _strides(descriptor))


def _strides(descriptor: Any) -> tuple[int, ...] | None:
    if not isinstance(descriptor, dace.data.Array):
        return None
    return tuple(int(s) for s in descriptor.strides)


def _obstacle(unit: Unit) -> str | None:
    for name in unit.external:
        descriptor = unit.sdfg.arrays[name]
        if any(not str(s).isdigit() for s in (*descriptor.shape, descriptor.total_size)):
            return f"the size of {name} changes while the kernel runs"
    return None


class _Probe:
    """The kernel with capture points in front of units."""

    def __init__(self, kernel: DaceKernel, units: list[Unit]) -> None:
        self.kernel, self.units = kernel, units
        self.width = max([1, *(len(u.nest.parameters) for u in units)])
        self.sdfg = copy.deepcopy(kernel.sdfg)
        self.outputs: dict[str, NDArray[Any]] = {}
        owners = list(kernel.sdfg.all_sdfgs_recursive())
        copies = list(self.sdfg.all_sdfgs_recursive())
        entries = [
            (copies[owners.index(u.sdfg)], copies[owners.index(u.sdfg)].node(u.sdfg.node_id(u.states[0])))
            for u in units
        ]
        size = len(units)
        self._declare(_COUNT, "int64", [size])
        self._declare(_WANTED, "int64", [size])
        self._declare(_PARAMETERS, "int64", [size * self.width])
        for number, (unit, (owner, entry)) in enumerate(zip(units, entries, strict=True)):
            self._insert(number, unit, owner, entry)
        self.sdfg.reset_cfg_list()

    def _declare(self, name: str, dtype: str, shape: list[int]) -> None:
        self.sdfg.add_array(name, shape, getattr(dace, dtype if dtype != "bool" else "bool_"))
        self.outputs[name] = np.zeros(shape, dtype)

    def _insert(self, number: int, unit: Unit, owner: Any, entry: Any) -> None:
        state = owner.add_state_before(entry, f"gnnperf_capture_{number}")
        lines, inputs, outputs = [], {}, {}
        for name in unit.external:
            descriptor, target = owner.arrays[name], f"gnnperf_{number}_{name}"
            self._declare(target, dtype_name(descriptor.dtype), [int(str(descriptor.total_size))])
            pointer = isinstance(descriptor, dace.data.Array)
            inputs[f"_in_{name}"] = (name, dace.pointer(descriptor.dtype) if pointer else descriptor.dtype)
            outputs[f"_out_{name}"] = (target, dace.pointer(descriptor.dtype))
            source = f"_in_{name}" if pointer else f"&_in_{name}"
            lines.append(
                f"std::memcpy(_out_{name}, {source}, sizeof(*_out_{name}) * {descriptor.total_size});"
            )
        for position, name in enumerate(unit.nest.parameters):
            lines.append(f"_parameters[{number * self.width + position}] = {name};")
        inputs["_wanted"] = (_WANTED, dace.pointer(dace.int64))
        outputs["_count"] = (_COUNT, dace.pointer(dace.int64))
        outputs["_parameters"] = (_PARAMETERS, dace.pointer(dace.int64))
        body = "\n".join(lines)
        code = f"if (_count[{number}] == _wanted[{number}]) {{\n{body}\n}}\n_count[{number}] += 1;"
        tasklet = state.add_tasklet(
            f"capture_{number}",
            {c: t for c, (_, t) in inputs.items()},
            {c: t for c, (_, t) in outputs.items()},
            code,
            language=dace.Language.CPP,
            code_global="#include <cstring>",
        )
        for name in {n for n, _ in outputs.values()} | {_WANTED}:
            self._expose(owner, name)
        for connector, (name, _) in inputs.items():
            state.add_edge(state.add_read(name), None, tasklet, connector, self._whole(owner, name))
        for connector, (name, _) in outputs.items():
            state.add_edge(tasklet, connector, state.add_write(name), None, self._whole(owner, name))

    def _expose(self, owner: Any, name: str) -> None:
        """Make an array of the whole kernel known in a nested SDFG, through all SDFGs between."""
        if name in owner.arrays:
            return
        self._expose(owner.parent_sdfg, name)
        owner.add_datadesc(name, copy.deepcopy(self.sdfg.arrays[name]))
        state, node = owner.parent, owner.parent_nsdfg_node
        node.add_in_connector(name)
        node.add_out_connector(name, force=True)  # an output under an input's name
        memlet = self._whole(owner.parent_sdfg, name)
        state.add_edge(state.add_read(name), None, node, name, memlet)
        state.add_edge(node, name, state.add_write(name), None, copy.deepcopy(memlet))

    @staticmethod
    def _whole(owner: Any, name: str) -> Any:
        return dace.Memlet.from_array(name, owner.arrays[name])

    def run(self, library: Library, runner: Runner, wanted: NDArray[Any]) -> dict[str, NDArray[Any]]:
        data = {**self.kernel.data, **self.outputs, _WANTED: wanted.astype(np.int64)}
        names = [n for n in self.outputs if n != _WANTED]
        return runner.reference(library, data, names, [*names, *self.kernel.outputs], LIMITS)

    def fill(self, number: int, unit: Unit, captured: dict[str, NDArray[Any]]) -> None:
        for name in unit.external:
            descriptor = unit.sdfg.arrays[name]
            flat = captured[f"gnnperf_{number}_{name}"]
            if not isinstance(descriptor, dace.data.Array):
                unit.data[name] = flat[0]
                continue
            strides = _strides(descriptor)
            assert strides is not None
            view = np.lib.stride_tricks.as_strided(
                flat, tuple(int(s) for s in descriptor.shape), tuple(s * flat.itemsize for s in strides)
            )
            unit.data[name] = aligned(view, strides)
        values = captured[_PARAMETERS][number * self.width :]
        parameters = {n: int(values[i]) for i, n in enumerate(unit.nest.parameters)}
        unit.data.update(parameters)
        unit.nest = replace(unit.nest, parameters=parameters)


def settle_inputs(kernel: DaceKernel, compiler: Compiler, runner: Runner) -> bool:
    """Where random square matrices make a kernel with recurrences overflow, make them symmetric and
    diagonally dominant. Changes `kernel.data`; True if it did. Matrices that the user gave stay."""
    matrices = [
        n for n in sorted(kernel.generated)
        if np.ndim(kernel.data[n]) == 2 and kernel.data[n].dtype.kind == "f"
        and kernel.data[n].shape[0] == kernel.data[n].shape[1]
    ]  # fmt: skip
    if not matrices or not _has_recurrence(kernel):
        return False
    library = compiled(kernel.simplified, f"{kernel.name}_simplify", compiler)
    results = runner.reference(library, kernel.data, kernel.outputs, kernel.inouts, LIMITS)
    if all(is_moderate(array) for array in results.values()):
        return False
    for name in matrices:
        make_dominant(kernel.data[name])
        kernel.generated.remove(name)  # it may not be just anything any more
    return True


def _has_recurrence(kernel: DaceKernel) -> bool:
    return any(
        unit.in_loop or any(isinstance(n, Loop) and not n.independent for n in walk(unit.nest.body))
        for unit in kernel.units
    ) or bool(kernel.skipped)
