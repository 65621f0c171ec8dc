"""An SDFG as a tree of pieces: elements of its control flow, each with its translation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.control_flow import (
    Element,
    For,
    Opaque,
    Sequence,
    StateBlock,
    While,
    sub_sequences,
)
from gnnperf.frontends.dace.translate import DaceTranslator
from gnnperf.nests.coverage import Flow, flow
from gnnperf.nests.ir import Buffer, Loop, Node, expressions_of, loads, symbols, walk

Nodes = tuple[Node, ...]


@dataclass
class Piece:
    """One element of the control flow with its translation, or the reason why there is none."""

    element: Element
    nodes: Nodes | None = None
    reason: str | None = None
    inner: list[list[Piece]] = field(default_factory=list)
    flow: Flow = field(default_factory=Flow)
    live_after: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """A state without dataflow: it only joins others."""
        return self.nodes == () and isinstance(self.element, StateBlock) and not self.element.state.nodes()


def build(translator: DaceTranslator, sequence: Sequence) -> list[Piece]:
    """Pieces of a sequence, live values included. Nothing is decided yet about which loops to absorb."""
    return [_piece(translator, element) for element in sequence]


def _piece(translator: DaceTranslator, element: Element) -> Piece:
    piece = Piece(element, inner=[build(translator, s) for s in sub_sequences(element)])
    if isinstance(element, StateBlock | For | While):
        try:
            piece.nodes = translator.item(element)
            piece.flow = flow(piece.nodes)
        except UnsupportedConstruct as reason:
            piece.reason = str(reason)
    elif isinstance(element, Opaque):
        piece.reason = element.reason
    return piece


def iterators(element: Element) -> set[str]:
    """Counters of the loops in an element."""
    own = {element.iterator} if isinstance(element, For) else set()
    return own.union(*(iterators(e) for body in sub_sequences(element) for e in body))


def parameter_names(nodes: Iterable[Node]) -> set[str]:
    """Free symbols: neither iterators of the nodes' own loops nor numbers."""
    inner = [n for top in nodes for n in walk((top,))]
    bound = {n.iterator for n in inner if isinstance(n, Loop)}
    return {name for n in inner for e in expressions_of(n) for name in symbols(e)} - bound


def bounding_arrays(nodes: Iterable[Node], buffers: Mapping[str, Buffer]) -> set[str]:
    """Buffers whose values decide how often loops run."""
    return {
        ld.buffer for n in nodes for lp in walk((n,)) if isinstance(lp, Loop)
        for b in (lp.start, lp.stop) for ld in loads(b) if buffers[ld.buffer].shape
    }  # fmt: skip
