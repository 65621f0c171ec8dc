"""Canonical digest of a program graph.

Colour refinement (1-dimensional Weisfeiler-Lehman) splits nodes as far as their surroundings tell
them apart. What stays equal is separated by singling out one node, refining again, and keeping the
least certificate over all choices. Two observations keep that from costing a factorial:

- Colour classes joined completely and uniformly, or not at all, carry no information beyond their
  colours. Without those edges the undecided nodes fall apart into small components, which are
  certified one by one and sorted: forty identical statements cost a sort.
- A certificate describes its graph completely, whatever choices it went through. Two nodes with
  equal certificates along any one path are therefore equivalent, and one of them needs no search.

Certificates are complete descriptions, so equal ones mean isomorphic graphs; every choice is made by
colours or by minima, so isomorphic graphs get equal ones. After McKay and Piperno, "Practical graph
isomorphism, II", J. Symb. Comput. 60 (2014).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gnnperf.errors import InputError

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import ProgramGraph

Colours: TypeAlias = Mapping[int, int]
Labels: TypeAlias = Mapping[tuple[int, int], int]
"""(source, target) -> label of all edges between them; source and target differ."""
Cells: TypeAlias = Mapping[int, Sequence[int]]


def digest(graph: ProgramGraph, effort: float = math.inf) -> str:
    """32 hex digits; equal if and only if the graphs are isomorphic (up to hash collisions).

    effort: visits of nodes and edges after which InputError is raised: graphs can be made up for which the
    search takes for ever.
    """
    loops: dict[int, list[str]] = defaultdict(list)
    between: dict[tuple[int, int], list[str]] = defaultdict(list)
    for e in graph.edges:
        word = json.dumps([e.kind, e.features], sort_keys=True)
        if e.source == e.target:  # a property of the node: `_split` counts pairs of different nodes
            loops[e.source].append(word)
        else:
            between[e.source, e.target].append(word)
    nodes = {
        i: json.dumps([n.kind, n.features, sorted(loops[i])], sort_keys=True)
        for i, n in enumerate(graph.nodes)
    }
    edges = {ends: json.dumps(sorted(found)) for ends, found in between.items()}
    words = sorted({*nodes.values(), *edges.values()})
    number = {word: i for i, word in enumerate(words)}
    colours = {v: number[word] for v, word in nodes.items()}
    labels = {ends: number[word] for ends, word in edges.items()}
    certificate = [words, sorted(graph.values.items()), _certificate(colours, labels, _Effort(effort))]
    return hashlib.sha256(json.dumps(certificate).encode()).hexdigest()[:32]


@dataclass
class _Effort:
    """Visits that are left."""

    left: float

    def spend(self, visits: int) -> None:
        self.left -= visits
        if self.left < 0:
            raise InputError("expected the graph of a program, got one too symmetric to be named")


def _certificate(initial: Colours, labels: Labels, effort: _Effort, any_choice: bool = False) -> Any:
    """A complete description of a coloured graph; canonical unless `any_choice` is as good as the best."""
    effort.spend(len(initial) + len(labels))
    colours = _refine(initial, labels)
    cells = _cells(colours)
    described = [[colour, len(members), initial[members[0]]] for colour, members in cells.items()]
    uniform, rest = _split(cells, colours, labels)
    parts = _components(rest)
    if len(parts) == 1 and len(parts[0]) == len(colours):
        return [described, _choose(cells, colours, labels, effort, any_choice)]
    inner = [
        _certificate({v: colours[v] for v in part}, _within(part, rest), effort, any_choice) for part in parts
    ]
    return [described, uniform, sorted(inner, key=json.dumps)]


def _choose(cells: Cells, colours: Colours, labels: Labels, effort: _Effort, any_choice: bool) -> Any:
    """The certificate with one node of the smallest undecided class singled out."""
    _, chosen = min((len(members), c) for c, members in cells.items() if len(members) > 1)
    fresh = len(colours)
    if any_choice:
        return [chosen, _certificate({**colours, cells[chosen][0]: fresh}, labels, effort, True)]
    different = {
        json.dumps(_certificate({**colours, v: fresh}, labels, effort, True)): v for v in cells[chosen]
    }
    found = (_certificate({**colours, v: fresh}, labels, effort) for v in different.values())
    return [chosen, min(found, key=json.dumps)]


def _refine(initial: Colours, labels: Labels) -> dict[int, int]:
    """The coarsest equitable refinement. A class is named by the number of nodes in classes before it,
    so that splitting one renames no other and only neighbours of renamed nodes are looked at again."""
    around: dict[int, list[tuple[int, int, int]]] = {v: [] for v in initial}
    for (source, target), label in labels.items():
        around[source].append((0, label, target))
        around[target].append((1, label, source))
    colours = dict(initial)
    cells: dict[int, list[int]] = {}
    for v in sorted(_named(initial, 0, colours), key=colours.__getitem__):
        cells.setdefault(colours[v], []).append(v)
    touched = set(cells)
    while touched:
        renamed: dict[int, int] = {}
        for colour in touched:
            if len(cells[colour]) > 1:
                signatures = {
                    v: sorted((way, label, colours[u]) for way, label, u in around[v]) for v in cells[colour]
                }
                _named(signatures, colour, renamed)
        moved = {v: c for v, c in renamed.items() if c != colours[v]}
        for v, c in moved.items():
            cells[colours[v]].remove(v)
            cells.setdefault(c, []).append(v)
        colours.update(moved)
        touched = {colours[u] for v in moved for _, _, u in around[v]}
    return colours


def _named(keys: Mapping[int, Any], first: int, names: dict[int, int]) -> Iterable[int]:
    """Names nodes by the order of their keys, equal for equal ones, counting nodes from `first`."""
    ordered = sorted(keys, key=keys.__getitem__)
    for position, v in enumerate(ordered):
        same = position > 0 and keys[v] == keys[ordered[position - 1]]
        names[v] = names[ordered[position - 1]] if same else first + position
    return ordered


def _cells(colours: Colours) -> Cells:
    cells: dict[int, list[int]] = defaultdict(list)
    for v, c in colours.items():
        cells[c].append(v)
    return dict(sorted(cells.items()))


def _split(cells: Cells, colours: Colours, labels: Labels) -> tuple[list[tuple[int, int, int]], Labels]:
    """Edges between classes joined completely and uniformly, as (class, class, label), and the others."""
    counts = Counter((colours[s], colours[t], label) for (s, t), label in labels.items())
    full = {
        (a, b, label)
        for (a, b, label), found in counts.items()
        if found == len(cells[a]) * (len(cells[b]) - (a == b))
    }
    rest = {
        ends: label for ends, label in labels.items() if (*map(colours.__getitem__, ends), label) not in full
    }
    return sorted(full), rest


def _components(labels: Labels) -> list[list[int]]:
    """Connected components of the nodes that have an edge."""
    neighbours: dict[int, set[int]] = defaultdict(set)
    for s, t in labels:
        neighbours[s].add(t)
        neighbours[t].add(s)
    components, seen = [], set[int]()
    for start in neighbours:
        if start not in seen:
            component, stack = [], [start]
            seen.add(start)
            while stack:
                v = stack.pop()
                component.append(v)
                fresh = neighbours[v] - seen
                seen |= fresh
                stack.extend(fresh)
            components.append(component)
    return components


def _within(part: Sequence[int], labels: Labels) -> Labels:
    inside = set(part)
    return {ends: label for ends, label in labels.items() if ends[0] in inside}
