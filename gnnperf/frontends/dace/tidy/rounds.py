"""Clean-up of translated code: what DaCe expressed through scalar temporaries, symbols and branches
becomes plain expressions, so that loops show the accesses they really make.

Every step preserves what the code computes. Steps are functions of a block (the body of one loop, or
the whole), what happens outside of that block, and the buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gnnperf.frontends.dace.tidy.branches import choose, decide, merge_arms
from gnnperf.frontends.dace.tidy.facts import Block, Code, Counts
from gnnperf.frontends.dace.tidy.recurrences import know_ahead
from gnnperf.frontends.dace.tidy.reductions import find_reductions, write_through
from gnnperf.frontends.dace.tidy.scalars import forward_scalars, split_versions
from gnnperf.frontends.dace.tidy.short_loops import write_out
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.ir import Buffer, Loop

Step = Callable[[Block, Counts, Code], Block]


def tidy(body: Block, buffers: dict[str, Buffer]) -> Block:
    """Clean up the code of one item or unit until nothing changes; `buffers` gets new local scalars.

    Only buffers of scope "local" are removed or renamed.
    """
    code = Code(buffers)
    while True:
        before = body
        for step in STEPS:
            body = _in_every_block(body, Counts(), code, step)
        if body == before:
            body = _in_every_block(body, Counts(), code, choose)
        if body == before:
            return body


def _in_every_block(block: Block, outside: Counts, code: Code, step: Step) -> Block:
    nodes = list(step(block, outside, code))
    loops = [(i, node) for i, node in enumerate(nodes) if isinstance(node, Loop)]
    everything = outside + code.total(nodes) if loops else outside
    for i, node in loops:
        others = everything - code.of(node)
        body = _in_every_block(node.body, others + code.bounds(node), code, step)
        if body != node.body:
            nodes[i] = replace(node, body=body)
            everything = others + code.of(nodes[i])
    return tuple(nodes)


def forward_arrays(block: Block, outside: Counts, code: Code) -> Block:
    """Forward substitution of private arrays inside loops (normalisation does it at the top)."""
    local = {
        name
        for name in code.total(block).writes
        if code.buffers[name].scope == "local" and code.buffers[name].shape and not outside.touches(name)
    }
    if not local:
        return block
    treated = {
        k: replace(b, transient=k in local, scope="global" if k in local else b.scope)
        for k, b in code.buffers.items()
    }
    return forward_substitute(block, treated)


STEPS: tuple[Step, ...] = (
    split_versions, merge_arms, forward_scalars, decide, find_reductions, know_ahead, write_out,
    write_through, forward_arrays,
)  # fmt: skip
"""`choose` only once these change nothing any more: of branches, some are the two arms of one choice."""
