"""Canonical digest of a program graph.

Colour refinement (1-dimensional Weisfeiler-Lehman) splits nodes as far as their surroundings tell
them apart. What stays equal is separated as in nauty-like tools (individualise one node, refine,
keep the least certificate over all choices), but per connected component: pairs of colour classes
joined completely and uniformly, or not at all, carry no information beyond the colours, and without
them the undecided nodes fall apart into small independent components. A program with many identical
statements therefore costs a sort, not a factorial. The certificate describes the graph completely,
so graphs with equal certificates are isomorphic.

After McKay and Piperno, "Practical graph isomorphism, II", J. Symb. Comput. 60 (2014).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import ProgramGraph

Colours: TypeAlias = dict[int, int]
Labels: TypeAlias = dict[tuple[int, int], tuple[int, ...]]
"""(source, target) -> the sorted labels of all edges between them."""


def digest(graph: ProgramGraph) -> str:
    """32 hex digits; equal if and only if the graphs are isomorphic (up to hash collisions)."""
    loops: dict[int, list[str]] = defaultdict(list)
    between: dict[tuple[int, int], list[str]] = defaultdict(list)
    for e in graph.edges:
        word = json.dumps([e.kind, e.features], sort_keys=True)
        if e.source == e.target:  # a property of the node: `_split` counts pairs of different nodes
            loops[e.source].append(word)
        else:
            between[e.source, e.target].append(word)
    nodes = [
        json.dumps([n.kind, n.features, sorted(loops[i])], sort_keys=True) for i, n in enumerate(graph.nodes)
    ]
    words = sorted({*nodes, *(word for found in between.values() for word in found)})
    number = {word: i for i, word in enumerate(words)}
    labels = {ends: tuple(sorted(number[word] for word in found)) for ends, found in between.items()}
    colours = {i: number[word] for i, word in enumerate(nodes)}
    certificate = [words, sorted(graph.values.items()), _certificate(colours, labels)]
    return hashlib.sha256(json.dumps(certificate).encode()).hexdigest()[:32]


def _certificate(colours: Colours, labels: Labels) -> Any:
    """A complete description of a coloured graph that does not depend on node numbers."""
    colours, history = _refine(colours, labels)
    cells = _cells(colours)
    uniform, rest = _split(cells, colours, labels)
    parts = _components(rest)
    if len(parts) == 1 and len(parts[0]) == len(colours):
        return ["choice", history, _least_choice(cells, colours, labels)]
    certificates = sorted(
        (_certificate({v: colours[v] for v in part}, _within(part, rest)) for part in parts), key=json.dumps
    )
    return ["parts", history, [[c, len(v)] for c, v in cells.items()], uniform, certificates]


def _refine(colours: Colours, labels: Labels) -> tuple[Colours, list[Any]]:
    """The coarsest equitable colouring, and what the new colours mean (in terms of the old)."""
    history: list[Any] = []
    count = len(set(colours.values()))
    while True:
        around: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {v: [] for v in colours}
        for (source, target), label in labels.items():
            around[source].append((0, colours[target], label))
            around[target].append((1, colours[source], label))
        signatures = {v: (colours[v], tuple(sorted(around[v]))) for v in colours}
        ranks = _ranks(signatures.values())
        if len(ranks) == count and history:
            return colours, history
        colours = {v: ranks[s] for v, s in signatures.items()}
        history.append(list(ranks))
        if len(ranks) == count:
            return colours, history
        count = len(ranks)


def _ranks(values: Iterable[Hashable]) -> dict[Any, int]:
    return {value: i for i, value in enumerate(sorted(set(values)))}  # type: ignore[type-var]


def _cells(colours: Colours) -> dict[int, list[int]]:
    cells: dict[int, list[int]] = defaultdict(list)
    for v, c in colours.items():
        cells[c].append(v)
    return dict(sorted(cells.items()))


def _split(cells: Mapping[int, Sequence[int]], colours: Colours, labels: Labels) -> tuple[list[Any], Labels]:
    """Edges between classes joined completely and uniformly, as (class, class, label), and the others."""
    counts: Counter[tuple[int, int, tuple[int, ...]]] = Counter(
        (colours[s], colours[t], label) for (s, t), label in labels.items()
    )
    full = {
        (a, b, label)
        for (a, b, label), found in counts.items()
        if found == len(cells[a]) * (len(cells[b]) - (a == b))
    }
    rest = {ends: lb for ends, lb in labels.items() if (colours[ends[0]], colours[ends[1]], lb) not in full}
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


def _least_choice(cells: Mapping[int, Sequence[int]], colours: Colours, labels: Labels) -> Any:
    """The least certificate over singling out each node of the smallest undecided class."""
    _, chosen = min((len(members), c) for c, members in cells.items() if len(members) > 1)
    fresh = len(colours)
    choices = (_certificate({**colours, v: fresh}, labels) for v in cells[chosen])
    return [chosen, min(choices, key=json.dumps)]
