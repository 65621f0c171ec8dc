"""Units: the runs of a kernel's items that are embedded, scheduled and replaced together."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import dace

from gnnperf.errors import NotApplicable
from gnnperf.frontends.dace.codegen import BASELINES, auto_optimised, dace_source, plain_source
from gnnperf.frontends.dace.control_flow import For, states_of
from gnnperf.frontends.dace.finish import UNKNOWN_TRIPS, Finisher
from gnnperf.frontends.dace.parts import Chain
from gnnperf.frontends.dace.pieces import Nodes, parameter_names
from gnnperf.frontends.dace.state_graph import names_used, python_expression, subscript_names
from gnnperf.frontends.dace.tidy import tidy
from gnnperf.frontends.native import native_function
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Source
from gnnperf.nests import LoopNest, nest_graph, normalise, partition
from gnnperf.nests.analysis import accesses, longest_chain, quantised, touched
from gnnperf.nests.borders import without_borders
from gnnperf.nests.coverage import flow
from gnnperf.nests.ir import Buffer, Statement, walk
from gnnperf.nests.trip_counts import measured_trip_counts
from gnnperf.nests.versions import with_versions
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.recipes.threads import span_bytes

LARGEST_VERSION_BYTES = 64 << 20
"""Larger scratch arrays stay as programs have them: which versions will be stored is not known yet."""
WITH_CALLS: Mapping[str, Recipe] = {"loops+openblas": Recipe(library="blas")}
"""A unit's products as calls of OpenBLAS beside plain loops, where DaCe calls it for products of the kernel:
often far ahead of what DaCe makes of the unit."""


@dataclass
class Unit:
    """One nest cut out of a kernel.

    `nest` is in normal form. `data` holds the real inputs of one execution of the unit in a run of
    the whole kernel: every array and scalar of `nest.arguments` (and of the cut-out SDFG), and its
    parameters. `inouts` are the outputs that are read before they are written, or not wholly
    written, `updated` those that are read.
    """

    index: int
    nest: LoopNest
    states: list[Any]
    """The states of `sdfg` that the unit consists of; the first is its entry, the last its exit."""
    sdfg: Any
    external: list[str]
    """Arrays of `sdfg` that the unit shares with its surroundings."""
    outputs: list[str]
    inouts: list[str]
    updated: list[str]
    reduction_length: int
    data: dict[str, Any] = field(default_factory=dict)
    calls: int | None = None
    """How often the unit runs in one run of the kernel; None where that was not counted."""
    objection: str | None = None
    """Why the unit cannot be measured, if so."""
    in_loop: bool = True
    """Is the unit inside a loop or branch of the kernel?"""
    has_products: bool = False
    """Does the kernel have nodes of BLAS, of which this may be one?"""
    written_before: frozenset[str] = frozenset()
    """Arrays that may have changed since the kernel was called; only for units outside of loops."""

    @property
    def name(self) -> str:
        return self.nest.name

    @property
    def quantised(self) -> Collection[str]:
        return quantised([self.nest])

    baselines: ClassVar[Mapping[str, str]] = BASELINES
    recipes: ClassVar[Mapping[str, Recipe]] = WITH_CALLS

    @property
    def trip_counts(self) -> Mapping[str, float]:
        """Measured means of loops whose bounds depend on data, by iterator."""
        return measured_trip_counts(self.nest, self.data)

    @property
    def graph(self) -> ProgramGraph:
        """The program graph; loops whose bounds depend on data take their measured mean extent."""
        return nest_graph(self.nest, self.trip_counts)

    def plain_source(self) -> Source:
        """What DaCe makes of the unit by default. Raises BuildError."""
        return plain_source(self.cutout(), f"{self.name}_simplify")

    def optimised_sources(self) -> Mapping[str, Source]:
        """What DaCe's `auto_optimize` makes of the unit, and `WITH_CALLS`. Raises BuildError."""
        found = {}
        if self.has_products:
            with contextlib.suppress(NotApplicable):
                for name, recipe in self.recipes.items():
                    found[name] = Source.of(native_function(recipe, self.nest, f"{self.name}_blas"))
        found[BASELINES["auto"]] = dace_source(auto_optimised(self.cutout()), f"{self.name}_auto")
        return found

    def cutout(self) -> Any:
        """A standalone SDFG of the unit: the unscheduled code that results are verified against."""
        program = copy.deepcopy(self.sdfg)
        program.parent = program.parent_sdfg = program.parent_nsdfg_node = None
        keep = {self.sdfg.node_id(s) for s in self.states}
        nodes = program.nodes()
        entry = nodes[self.sdfg.node_id(self.states[0])]
        program.remove_nodes_from([n for i, n in enumerate(nodes) if i not in keep])
        program.start_block = program.node_id(entry)
        program.name = self.name
        used = names_used(program, program.nodes())
        written = {n.data for s in program.states() for n in s.data_nodes() if s.in_degree(n)}
        by_value = {
            n for n in self.outputs if n in written and isinstance(program.arrays[n], dace.data.Scalar)
        }
        for edge in program.edges():
            subscript_names(edge.data, dict.fromkeys(by_value, 1))
        for name, descriptor in list(program.arrays.items()):
            if name in self.external:
                if name in by_value:
                    # DaCe passes scalars by value: what is written would be lost.
                    descriptor = program.arrays[name] = dace.data.Array(descriptor.dtype, (1,))
                descriptor.transient = False
                descriptor.lifetime = dace.AllocationLifetime.Scope
                if isinstance(descriptor, dace.data.Array):
                    descriptor.storage = dace.StorageType.Default
            elif name not in used:
                program.remove_data(name, validate=False)
        program.arg_names = []
        program.reset_cfg_list()
        return program


def make_units(chain: Chain, finisher: Finisher, kernel: str, first_index: int) -> list[Unit]:
    """Units of one chain, in execution order. The chain's states are put into that order; those of which
    nothing is ever read, such as zeros that only borders would keep, are emptied."""
    items = [i for i, nodes in enumerate(chain.nodes) if nodes]
    guesses = representative_values(chain, finisher)
    known = finisher.translator.buffers
    live = {n for n, b in known.items() if not b.transient} | set(chain.live_after)
    parts, buffers, groups = _split([chain.nodes[i] for i in items], known, live, guesses)
    members = [[items[k] for k in group] for group in groups]
    arrange(finisher.translator.sdfg, chain, members)
    units: list[Unit] = []
    for group in groups:
        others = [n for k, nodes in enumerate(parts) if k not in group for n in nodes]
        outside = live | {a.load.buffer for n in others for a in accesses(n)}
        nodes = tuple(n for k in group for n in parts[k])
        states = [s for k in group for s in states_of(chain.pieces[items[k]].element)]
        unit = _unit(finisher, chain, nodes, buffers, states, outside, guesses)
        if not unit.nest.body:
            for state in states:
                state.remove_nodes_from(state.nodes())
            continue
        unit.index = first_index + len(units)
        unit.nest = replace(unit.nest, name=f"{kernel}_{unit.index}")
        units.append(unit)
    return units


def _split(
    parts: list[Nodes], buffers: Mapping[str, Buffer], live: set[str], guesses: Mapping[str, int]
) -> tuple[list[Nodes], Mapping[str, Buffer], list[list[int]]]:
    """Parts and buffers, with versions of the scratch arrays that are used again, and the partition of the
    parts. Where a version would be in several units, its array keeps its name: it is one of the SDFG's, and
    the order of units is not that of the program."""
    own = {
        name
        for name, buffer in buffers.items()
        if buffer.transient and buffer.scope == "global" and buffer.shape
        if name not in live and span_bytes(buffer) <= LARGEST_VERSION_BYTES
    }
    while True:
        found = with_versions([n for nodes in parts for n in nodes], buffers, own)
        rest = iter(found.nodes)
        renamed = [tuple(itertools.islice(rest, len(nodes))) for nodes in parts]
        groups = partition(renamed, found.buffers, live, guesses)
        names = [{name for k in group for n in renamed[k] for name in touched(n)} for group in groups]
        torn = {
            old
            for new, old in found.origins.items()
            if any(sum(name in unit for unit in names) > 1 for name in (new, old))
        }
        if not torn:
            return renamed, found.buffers, groups
        own -= torn


def _unit(
    finisher: Finisher,
    chain: Chain,
    nodes: Nodes,
    buffers: Mapping[str, Buffer],
    states: list[Any],
    outside: set[str],
    guesses: Mapping[str, int],
) -> Unit:
    """The unit of some of a chain's pieces, which are `nodes` and `states`. `outside`: buffers that anything
    else may read."""
    sdfg = finisher.translator.sdfg
    whole = flow(nodes)
    own = set() if chain.enclosing else _touched_only_in(sdfg, states)
    shared = outside | (whole.exposed - own)
    scoped = {
        name: buffers[name]
        if buffers[name].scope == "local"
        else replace(buffers[name], transient=name not in shared)
        for name in {a.load.buffer for n in nodes for a in accesses(n)}
    }
    nodes = _plain_scalars(nodes, scoped)
    parameters = {p: guesses.get(p, 0) for p in sorted(parameter_names(nodes))}
    stored = {s.target.buffer for n in nodes for s in walk((n,)) if isinstance(s, Statement)}
    outputs = sorted(n for n in stored if not scoped[n].transient)
    visible = {n for n, b in scoped.items() if b.scope == "global" and not b.transient}
    accessed = names_used(sdfg, states)
    nest = normalise(LoopNest("", scoped, nodes, parameters))
    return Unit(
        index=0,
        nest=replace(nest, body=without_borders(nest.body, nest.buffers)),
        states=states,
        sdfg=sdfg,
        external=sorted(
            n for n in accessed & sdfg.arrays.keys() if not sdfg.arrays[n].transient or n in visible
        ),
        outputs=outputs,
        inouts=[n for n in outputs if n in whole.exposed or not whole.defines(scoped[n])],
        updated=[n for n in outputs if n in whole.exposed],
        reduction_length=longest_chain(nodes, finisher.value, UNKNOWN_TRIPS),
    )


def _touched_only_in(sdfg: Any, states: list[Any]) -> set[str]:
    """Transients that nothing but these states touches: run once, they find there what they wrote
    themselves, even where that cannot be proven element by element (a gather, say)."""
    elsewhere = {n.data for s in sdfg.states() if s not in states for n in s.data_nodes()}
    elsewhere |= {str(f) for e in sdfg.all_interstate_edges() for f in e.data.free_symbols}
    return {n for n, d in sdfg.arrays.items() if d.transient} - elsewhere


def _plain_scalars(nodes: Nodes, buffers: dict[str, Buffer]) -> Nodes:
    """Scalars that only this unit sees become expressions where that adds no work."""
    own = [k for k, b in buffers.items() if b.transient and b.scope == "global" and not b.shape]
    for name in own:
        buffers[name] = replace(buffers[name], scope="local")
    nodes = tidy(nodes, buffers)
    for name in [k for k in buffers if k in own or any(k.startswith(f"{o}_v") for o in own)]:
        users = [n for n in nodes if any(a.load.buffer == name for a in accesses(n))]
        if len(users) > 1:  # it carries a value from one nest to the next
            buffers[name] = replace(buffers[name], scope="global", transient=True)
    return nodes


def representative_values(chain: Chain, finisher: Finisher) -> dict[str, int]:
    """Symbols that the kernel sets around a chain, as far as its inputs tell; the middle of loops."""
    values: dict[str, int] = {}
    for name, text in chain.assigned.items():
        found = finisher.constant(python_expression(text), values)
        if found is not None:
            values[name] = found
    for loop in chain.enclosing:
        if isinstance(loop, For):
            values[loop.iterator] = finisher.middle(loop, values)
    return values


# --------------------------------------------------------------------------- order of states


def arrange(sdfg: Any, chain: Chain, members: list[list[int]]) -> None:
    """Put the chain's states into the order of its units, so that each unit is one run of states."""
    wanted = [i for group in members for i in group]
    order = [i for i in range(len(chain.pieces)) if i not in wanted]  # empty states first
    order += wanted
    if order == list(range(len(chain.pieces))):
        return
    spans = [(states_of(p.element)[0], states_of(p.element)[-1]) for p in chain.pieces]
    entering = list(sdfg.in_edges(spans[0][0]))
    leaving = list(sdfg.out_edges(spans[-1][1]))
    was_start = sdfg.start_state is spans[0][0]
    for (_, before), (after, _) in itertools.pairwise(spans):
        for edge in sdfg.edges_between(before, after):
            sdfg.remove_edge(edge)
    spans = [spans[i] for i in order]
    for (_, before), (after, _) in itertools.pairwise(spans):
        sdfg.add_edge(before, after, dace.InterstateEdge())
    for edge in entering:
        sdfg.remove_edge(edge)
        sdfg.add_edge(edge.src, spans[0][0], edge.data)
    for edge in leaving:
        sdfg.remove_edge(edge)
        sdfg.add_edge(spans[-1][1], edge.dst, edge.data)
    if was_start:
        sdfg.start_block = sdfg.node_id(spans[0][0])
