"""Scratch arrays that are filled anew for another use, as an array for each:

    T[...] = f(A);  B[...] = g(T);  T[...] = f(C);  D[...] = g(T)

Names that a program uses again tie together what else has nothing to do with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gnnperf.nests.analysis import rename_buffers, touched, written
from gnnperf.nests.coverage import flow
from gnnperf.nests.ir import Buffer, Loop, Node
from gnnperf.nests.names import free_name


@dataclass(frozen=True)
class Versions:
    """origins: the new arrays, and those that they are versions of."""

    nodes: tuple[Node, ...]
    buffers: dict[str, Buffer]
    origins: Mapping[str, str]


def with_versions(nodes: Sequence[Node], buffers: Mapping[str, Buffer], own: Collection[str]) -> Versions:
    """The nodes with an array for each use of those of `own`, which are scratch that nothing reads after the
    nodes; inside loops as well."""
    known, origins, found = dict(buffers), dict[str, str](), list(nodes)
    for name in sorted(own):
        touching = [i for i, node in enumerate(found) if name in touched(node)]
        starts = [i for i in touching[1:] if _begins(name, [found[k] for k in touching if k >= i])]
        for start, stop in pairwise([*starts, len(found)]):
            version = free_name(name, known)
            known[version], origins[version] = replace(buffers[name], name=version), name
            found[start:stop] = [rename_buffers(node, {name: version}) for node in found[start:stop]]
    users = Counter(name for node in found for name in touched(node))
    for place, node in enumerate(found):
        names = {name for name in touched(node) if users[name] == 1 and origins.get(name, name) in own}
        if names and isinstance(node, Loop):
            names -= touched(replace(node, body=())) | flow(node.body).exposed
            inside = with_versions(node.body, known, names)
            found[place], known = replace(node, body=inside.nodes), inside.buffers
            origins |= {new: origins.get(old, old) for new, old in inside.origins.items()}
    return Versions(tuple(found), known, origins)


def _begins(name: str, nodes: Sequence[Node]) -> bool:
    """Does the first of the nodes write what all of them read of an array?"""
    return name in written(nodes[0]) and name not in flow(tuple(nodes)).exposed
