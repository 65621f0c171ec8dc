"""Scratch arrays of which every iteration sees one element, its own, become local scalars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnnperf.nests.analysis import accesses, retarget
from gnnperf.nests.ir import Buffer, Load, Loop, Node, Statement, walk
from gnnperf.nests.names import free_name

Body = tuple[Node, ...]


def contract(body: Body, buffers: Mapping[str, Buffer]) -> tuple[Body, dict[str, Buffer]]:
    """The body with such arrays as scalars, and the buffers that it then uses."""
    found = dict(buffers)
    for name in sorted({a.load.buffer for n in body for a in accesses(n)}):
        buffer = buffers[name]
        if buffer.transient and buffer.scope == "global" and _belongs_to_an_iteration(name, body):
            scalar = free_name(f"{name}_here", found)
            found[scalar] = Buffer(scalar, buffer.dtype, (), (), transient=True, scope="local")
            body = tuple(retarget(n, name, Load(scalar)) for n in body)
    return body, found


def _belongs_to_an_iteration(name: str, body: Body) -> bool:
    """Is the array touched only among the statements of one innermost loop, always at the same element,
    which is written there before it is read?"""
    users = [n for n in walk(body) if isinstance(n, Statement) and _touches(n, name)]
    homes = [n for n in walk(body) if isinstance(n, Loop) and any(u in n.body for u in users)]
    cells = {a.load.indices for n in users for a in accesses(n) if a.load.buffer == name}
    if len(users) < 2 or len(homes) != 1 or len(cells) != 1:
        return False
    if any(_touches(replace(n, body=()), name) for n in walk(body) if isinstance(n, Loop)):
        return False
    first = users[0]
    defines = first.target.buffer == name and first.reduce is None and first.guard is None
    return defines and not any(a.load.buffer == name and not a.is_write for a in accesses(first))


def _touches(node: Node, name: str) -> bool:
    return any(a.load.buffer == name for a in accesses(node))
