"""`load_kernel`: from what the user names to a kernel with its units and their inputs."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import dace
import numpy as np
from dace.frontend.python.parser import DaceProgram as DaceProgramObject

from gnnperf.errors import BuildError, InputError
from gnnperf.frontends.base import Skipped
from gnnperf.frontends.dace.aliases import merge, same_arrays
from gnnperf.frontends.dace.capture import capture_inputs
from gnnperf.frontends.dace.codegen import BASELINES, WITH_BLAS, auto_optimised, dace_source, plain_source
from gnnperf.frontends.dace.control_flow import control_flow
from gnnperf.frontends.dace.finish import Finisher
from gnnperf.frontends.dace.inputs import (
    make_inputs,
    nearby_inputs,
    other_inputs,
    resolve_symbols,
    shaped,
    user_inputs,
)
from gnnperf.frontends.dace.normal_form import bind, linearise, name_elements, simplified
from gnnperf.frontends.dace.openblas import has_products
from gnnperf.frontends.dace.parts import Chain, parts
from gnnperf.frontends.dace.pieces import Liveness, bounding_arrays, build
from gnnperf.frontends.dace.reading import Parsed, parse
from gnnperf.frontends.dace.source import load_program, load_sdfg
from gnnperf.frontends.dace.splice import splice
from gnnperf.frontends.dace.translate import DaceTranslator
from gnnperf.frontends.dace.units import Unit, make_units
from gnnperf.frontends.user_files import split_spec
from gnnperf.measure import Compiler, Runner, Source
from gnnperf.measure.python_function import arguments_of, by_name, python_function
from gnnperf.nests.analysis import is_data_dependent, quantised

if TYPE_CHECKING:
    from gnnperf.schedules.recipes import CppFunction

SDFG = "kernel.sdfgz"
"""Name of the file that a tuned kernel is saved to."""


@dataclass(frozen=True)
class DaceProgram:
    """A whole kernel as an SDFG that DaCe alone can compile."""

    sdfg: Any

    def source(self, name: str) -> Source:
        """Its code under a name. Raises BuildError."""
        return dace_source(self.sdfg, name)

    def save(self, folder: Path) -> Sequence[str]:
        """Write the SDFG; the name of the file."""
        self.sdfg.save(str(folder / SDFG), compress=True)
        return (SDFG,)


@dataclass
class DaceKernel:
    """A whole kernel with its nests.

    `parsed`: the user's program. `bound`: the same with symbols bound and library nodes expanded. `sdfg`:
    the same in linear form, which units refer to. `data`: a value for every argument. `outputs`:
    arrays the kernel writes. `inouts`: those of them that it reads before, or may leave parts of; `updated`:
    those that it reads before.
    """

    name: str
    sdfg: Any
    bound: Any
    parsed: Any
    sizes: dict[str, int]
    """Values of its symbols."""
    data: dict[str, Any]
    generated: set[str]
    """Arguments whose values were made up, and may be others as well."""
    outputs: list[str]
    inouts: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    function: tuple[Path, str] | None = None
    """File and name of the Python function."""
    program: DaceProgramObject | None = None
    """It was parsed from; None where it was an SDFG."""
    units: list[Unit] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    same: Mapping[str, str] = field(default_factory=dict)
    """Arguments that are another one, and have no value of their own."""

    frontend: ClassVar[str] = "dace"
    schedule_kind: ClassVar[str] = "recipe"
    baselines: ClassVar[Mapping[str, str]] = BASELINES

    @property
    def tasks(self) -> list[Unit]:
        """The units that have a loop."""
        return [unit for unit in self.units if unit.nest.has_loops]

    @property
    def whole(self) -> DaceKernel:
        """The kernel itself, as what is measured."""
        return self

    @property
    def reduction_length(self) -> int:
        """Terms of the longest chain of roundings behind an output: units feed one another."""
        return max(1, sum(unit.reduction_length for unit in self.units))

    @cached_property
    def quantised(self) -> Collection[str]:
        """Results that are integers made of real numbers; none where parts of the kernel are not known."""
        return quantised(unit.nest for unit in self.units) if not self.skipped else ()

    @property
    def in_python(self) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
        """See `TunableProgram`."""
        program = self.program
        if program is None:
            return None

        def run(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            values: dict[str, Any] = {}
            for name, value in inputs.items():
                values[name] = np.array(value) if np.ndim(value) else np.asarray(value)[()]
            values |= {other: values[name] for other, name in self.same.items()}
            values |= self.sizes
            function = python_function(program, self.sizes)
            returned = function(*arguments_of(function, values))
            shapes = {name: np.shape(self.data[name]) for name in self.outputs}
            found = {**values, **by_name(returned, shapes)}
            return {name: found[name] for name in self.outputs}

        return run

    def plain_source(self) -> Source:
        """What DaCe makes of the kernel by default. Raises BuildError."""
        return plain_source(self.simplified, f"{self.name}_simplify")

    def optimised_sources(self) -> Mapping[str, Source]:
        """What DaCe's `auto_optimize` makes of the kernel, of its products loops or calls of OpenBLAS. Raises
        BuildError."""
        found = {}
        if self.with_products is not None:
            with contextlib.suppress(BuildError):  # then there are the loops
                blas = auto_optimised(self.with_products)
                found[WITH_BLAS] = dace_source(blas, f"{self.name}_blas")
        found[BASELINES["auto"]] = dace_source(auto_optimised(self.simplified), f"{self.name}_auto")
        return found

    def capture(self, compiler: Compiler, runner: Runner, for_graphs: bool = False) -> None:
        """Fill the inputs of all units by running the kernel; with `for_graphs` only where graphs need them,
        for loops that depend on data. Raises BuildError, MeasureError."""
        if not for_graphs or any(is_data_dependent(loop) for u in self.units for loop in u.nest.loops()):
            capture_inputs(self, compiler, runner)

    def other_inputs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `TunableProgram`."""
        return other_inputs(self.data, self.generated)

    def nearby_inputs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `TunableProgram`."""
        return nearby_inputs(self.data, self.generated)

    def tuned(self, functions: Mapping[int, CppFunction]) -> Iterator[DaceProgram]:
        """The kernel with functions in place of units: first with DaCe's optimisation of the rest, then as it
        is. Raises GnnperfError where the SDFG is not valid."""
        spliced = splice(self, functions)
        with contextlib.suppress(BuildError):
            yield DaceProgram(auto_optimised(spliced))
        yield DaceProgram(spliced)

    def is_all(self, task: Any) -> bool:
        """Is there nothing in the kernel besides the unit, run once?"""
        alone = len(self.units) == 1 and not self.skipped and task.calls == 1 and not task.in_loop
        return alone and sorted(task.outputs) == sorted(self.outputs)

    def kept(self, baseline: str) -> DaceProgram:
        """The program behind a baseline."""
        if baseline == WITH_BLAS:
            return DaceProgram(auto_optimised(self.with_products))
        optimised = baseline == BASELINES["auto"]
        return DaceProgram(auto_optimised(self.simplified) if optimised else self.simplified)

    @cached_property
    def simplified(self) -> Any:
        """What DaCe makes of the program by default: the "simplify" baseline, and the truth that results
        are compared with."""
        return simplified(self.bound, scalars_as_symbols=True)[0]

    @cached_property
    def with_products(self) -> Any | None:
        """The same, with nodes of BLAS as they are; None where there are none."""
        if not has_products(self.parsed):
            return None
        program = copy.deepcopy(self.parsed)
        program.name = self.name
        try:
            bind(program, self.sizes, expand=False)
            program, _ = simplified(program, scalars_as_symbols=True, expand=False)
        except Exception:  # DaCe's passes raise anything; without products there are the loops
            return None
        return program if has_products(program) else None


def load_kernel(
    kernel: Any,
    symbols: Mapping[str, float] | None = None,
    inputs: Mapping[str, Any] | str | None = None,
    seed: int = 0,
) -> DaceKernel:
    """Load `file.py:name` (a `@dace.program`), an `.sdfg`/`.sdfgz` file, or either as an object.

    symbols: values of symbols, scalar arguments and parameters of the inputs function (`--set`). inputs:
    arrays and scalars by argument, or `file.py:function` that returns such a dict; what is left out is
    generated. Raises InputError. The units have no data yet: see `capture_inputs`.
    """
    symbols = dict(symbols or {})
    given, settled = (
        user_inputs(inputs, symbols, seed) if isinstance(inputs, str) else (dict(inputs or {}), set())
    )
    program = kernel if isinstance(kernel, DaceProgramObject) else None
    if isinstance(kernel, dace.SDFG):
        parsed, name = Parsed(kernel, {}, {}), kernel.name
    elif program is not None:
        parsed, name = parse(program, given, symbols), program.f.__name__
    elif Path(spec := str(kernel)).suffix in (".sdfg", ".sdfgz"):
        parsed, name = Parsed(load_sdfg(Path(spec)), {}, {}), _kernel_name(spec)
    else:
        program, name = load_program(spec), _kernel_name(spec)
        parsed = parse(program, given, symbols)
    own = {*map(str, parsed.sdfg.free_symbols), *_scalars(parsed.sdfg)}
    settled |= parsed.sizes.keys()
    symbols = {k: v for k, v in symbols.items() if k in own or k not in settled}
    given = {k: v for k, v in given.items() if k in own or k not in parsed.sizes}
    found = kernel_of(parsed.sdfg, symbols, {**parsed.closure, **given}, seed, name)
    sizes, notes = {**parsed.sizes, **found.sizes}, [*parsed.notes, *found.notes]
    return replace(found, function=_function(kernel), program=program, sizes=sizes, notes=notes)


def _function(kernel: Any) -> tuple[Path, str] | None:
    """File and name of a program's Python function; None where it has none that can be found by these."""
    if isinstance(kernel, DaceProgramObject):
        file, name = inspect.getsourcefile(kernel.f), kernel.f.__qualname__
        return (Path(file), name) if file and Path(file).is_file() and name.isidentifier() else None
    if isinstance(kernel, str) and ":" in kernel:
        return split_spec(kernel, "kernel")
    return None


def _scalars(sdfg: Any) -> set[str]:
    """Scalar arguments."""
    return {n for n, d in sdfg.arrays.items() if isinstance(d, dace.data.Scalar) and not d.transient}


def _kernel_name(spec: str) -> str:
    """A C identifier for the kernel: the function's name, or the file's."""
    _, _, function = spec.rpartition(":")
    name = function if function.isidentifier() else Path(spec).stem
    return re.sub(r"\W", "_", name)


def kernel_of(
    sdfg: Any,
    symbols: Mapping[str, float] | None = None,
    given: Mapping[str, Any] | None = None,
    seed: int = 0,
    name: str | None = None,
) -> DaceKernel:
    """A kernel from an SDFG object; see `load_kernel`. The SDFG is not changed."""
    symbols, given = dict(symbols or {}), dict(given or {})
    bound = copy.deepcopy(sdfg)
    values = resolve_symbols(bound, symbols, given)
    known = values.keys() | _scalars(bound)
    unknown = sorted(symbols.keys() - known)
    if unknown:
        raise InputError(
            f"--set: the kernel has no symbol or scalar {', '.join(unknown)}; "
            f"it has {', '.join(sorted(known)) or 'none'}"
        )
    bound.name = name = name or bound.name
    bind(bound, values)
    given, notes = shaped(bound, given)
    data, generated = make_inputs(bound, {**symbols, **values}, given, seed)
    linear, failures = simplified(bound, scalars_as_symbols=False)
    notes += failures
    linearise(linear)
    name_elements(linear)
    outputs = sorted(
        {
            n.data for s in linear.states() for n in s.data_nodes()
            if s.in_degree(n) > 0 and not linear.arrays[n.data].transient
        }
    )  # fmt: skip
    if same := same_arrays(given, outputs):
        apart = {key: value for key, value in given.items() if key not in same}
        found = kernel_of(merge(sdfg, linear, same), symbols, apart, seed, name)
        said = [
            f"{second} and {first} are one array: the kernel is taken so" for second, first in same.items()
        ]
        return replace(found, same=same, notes=[*said, *found.notes])
    kernel = DaceKernel(name, linear, bound, sdfg, values, data, generated, outputs, notes=notes)
    scalars = {k: v for k, v in data.items() if np.ndim(v) == 0}
    read, needed = _add_units(kernel, linear, scalars)
    kernel.inouts = [name for name in outputs if name in needed]
    kernel.updated = [name for name in outputs if name in read]
    for unit in kernel.units:
        unit.has_products = has_products(sdfg)
    _mark_first(kernel)
    _require_real_inputs(kernel)
    return kernel


def _add_units(kernel: DaceKernel, sdfg: Any, scalars: Mapping[str, Any]) -> tuple[Set[str], Set[str]]:
    """Units of a program, and of the nested programs that are not units as a whole. Returns the names of
    arrays and symbols that may be read before they are written, and of those whose values before the program
    can matter for what it leaves: they also may be written in part."""
    translator = DaceTranslator(sdfg)
    pieces = build(translator, control_flow(sdfg))
    results = frozenset(name for name, array in sdfg.arrays.items() if not array.transient)
    liveness = Liveness(sdfg, translator.buffers)
    read, needed = (liveness.annotate(pieces, after) for after in (frozenset(), results))
    finisher = Finisher(translator, scalars)
    for part in list(parts(finisher, pieces, [])):
        if isinstance(part, Chain):
            kernel.units += make_units(part, finisher, kernel.name, len(kernel.units))
        elif isinstance(part, Skipped):
            kernel.skipped.append(part)
        else:
            _add_units(kernel, part, {})
    return read, needed


def _mark_first(kernel: DaceKernel) -> None:
    """Which arrays may have changed before each unit that runs exactly once."""
    sdfg = kernel.sdfg
    written: set[str] = set()
    entries = {u.states[0]: u for u in kernel.units if u.sdfg is sdfg}
    on_path: list[Any] = []
    state = sdfg.start_state
    while state is not None and state not in on_path:
        on_path.append(state)
        unit = entries.get(state)
        if unit is not None:
            unit.written_before, unit.in_loop = frozenset(written), False
            written |= {n.data for s in unit.states for n in s.data_nodes() if s.in_degree(n)}
            state = unit.states[-1]
        written |= {n.data for n in state.data_nodes() if state.in_degree(n)}
        edges = sdfg.out_edges(state)
        state = edges[0].dst if len(edges) == 1 else None


def _require_real_inputs(kernel: DaceKernel) -> None:
    """Random integers are no sparse matrix: loops over them mean nothing."""
    deciding = {n for u in kernel.units for n in bounding_arrays(u.nest.body, u.nest.buffers)}
    made_up = sorted(deciding & kernel.generated)
    if made_up:
        raise InputError(
            f"kernel: loops depend on the contents of {', '.join(made_up)}; give real inputs with "
            "--inputs file.py:function (a function that returns a dict of arrays)"
        )
