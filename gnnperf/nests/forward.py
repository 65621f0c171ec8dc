"""Forward substitution: loads of a scratch array become the expression that produced it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.affine import Affine, affine, constant, simplify
from gnnperf.nests.analysis import Band, accesses, band, extent, mentions, rebuild, varies, written
from gnnperf.nests.coverage import flow, written_box
from gnnperf.nests.dtypes import as_stored
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    loads,
    map_expr,
    map_node,
    reads,
    subexpressions,
    walk,
)  # fmt: skip
from gnnperf.nests.pieces import Piece, piece_of, unread, whole
from gnnperf.nests.ranges import separates
from gnnperf.nests.subscripts import canonical_subscripts
from gnnperf.nests.tables import LEAST_USES, MOST_ELEMENTS, is_costly

MAX_OPERATIONS = 192
"""Operations of a statement beyond which recomputation is given up: code size and registers."""


def forward_substitute(
    body: tuple[Node, ...], buffers: Mapping[str, Buffer], *, recompute: bool = False, choices: bool = False
) -> tuple[Node, ...]:
    """Replace loads of a transient by the expression that produced it, where that adds no work; with
    `recompute`, also where it does. Inside loops, this treats the transients that only one loop touches.

    This undoes what NumPy-style code and fission introduce: one array temporary per operation.
    """
    nodes = list(body)
    position = 0
    while position < len(nodes):
        if done := _inline_everywhere(nodes, position, buffers, recompute, choices):
            for place in reversed(done):
                del nodes[place]
            position = 0  # what fed only this producer may now be dead or used once
            continue
        position += 1
    return tuple(
        _inside(node, nodes[:i] + nodes[i + 1 :], buffers, recompute, choices) for i, node in enumerate(nodes)
    )


def _inside(
    node: Node, others: list[Node], buffers: Mapping[str, Buffer], recompute: bool, choices: bool
) -> Node:
    """The body of a loop, where nothing but that body touches the transients that are substituted."""
    if not isinstance(node, Loop):
        return node
    shared = {a.load.buffer for n in (*others, replace(node, body=())) for a in accesses(n)}
    shared |= flow(node.body).exposed  # carried from one iteration to the next
    private = {k: replace(b, transient=False) if k in shared else b for k, b in buffers.items()}
    return replace(node, body=forward_substitute(node.body, private, recompute=recompute, choices=choices))


def _producer(node: Node, buffers: Mapping[str, Buffer]) -> Piece | None:
    """A nest that fills scratch, a box of it."""
    piece = piece_of(node)
    if piece is None or piece.statement.reduce:
        return None
    buffer = buffers[piece.target]
    if not buffer.transient or buffer.scope != "global":
        return None
    return None if any(ld.buffer == piece.target for ld in loads(piece.statement.value)) else piece


def _inline_everywhere(
    nodes: list[Node], position: int, buffers: Mapping[str, Buffer], recompute: bool, choices: bool
) -> Sequence[int]:
    """In place: what the node at this position produces, as the value where it is read, if all of that can be
    so. Returns the positions of nodes that nothing needs then, or needed before; none where nothing is."""
    if (producer := _producer(nodes[position], buffers)) is None:
        return ()
    name = producer.target
    touching = [i for i, n in enumerate(nodes) if any(a.load.buffer == name for a in accesses(n))]
    following = next((i for i in touching if i > position), None)
    if following is not None and (
        updated := _updated(producer, nodes[position + 1 : following + 1], buffers)
    ):
        nodes[following] = updated
        return (position,)
    places = [i for i in touching if name in written(nodes[i])]
    users = [i for i in touching if i not in places]
    if places[0] < position or (users and users[0] < places[-1]):
        return ()
    parts = [part for i in places if (part := _producer(nodes[i], buffers)) is not None]
    if len(parts) < len(places):
        return ()
    if not users:  # dead code
        return places
    readers = {
        buffers[s.target.buffer].dtype
        for i in users
        for s in walk((nodes[i],))
        if isinstance(s, Statement) and any(ld.buffer == name for ld in reads(s))
    }
    is_copy = not any(isinstance(e, Op) for part in parts for e in subexpressions(part.statement.value))
    pieces = [_as_read(part, readers, buffers) for part in parts]
    reading = [nodes[i] for i in users]
    if len(pieces) > 1 and (in_vain := unread(pieces, buffers[name], reading)):
        return [places[n] for n in in_vain]
    if (found := whole(pieces, buffers, reading)) is None:
        return ()
    sources = {ld.buffer for ld in loads(found.statement.value)}
    if any(not sources.isdisjoint(written(nodes[i])) for i in range(position + 1, max(users))):
        return ()
    is_choice = len(pieces) > 1 and not isinstance(found.statement.value, Load)
    if is_choice and any(buffers[source].transient for source in sources):
        return ()  # nests that share the rows of what they hand on do not choose among them
    if recompute:
        is_table = _is_table(found, buffers[name], nodes)
        if not all(_may_recompute(nodes[i], name, found, is_table) for i in users):
            return ()
    may_add_work = choices if is_choice else recompute
    if not may_add_work and not is_copy and not _adds_no_work(nodes, users, name, found.nest):
        return ()
    if not all(_safe_in_place(nodes[i], sources, found) for i in users):
        return ()

    def inline(expr: Expr) -> Expr:
        return found.value_at(expr.indices) if isinstance(expr, Load) and expr.buffer == name else expr

    for i in users:
        nodes[i] = canonical_subscripts(map_node(nodes[i], inline))
    return places


def _updated(producer: Piece, following: Sequence[Node], buffers: Mapping[str, Buffer]) -> Node | None:
    """The last of these nests with what it makes of the elements that the producer fills, and no others, as a
    function of what the producer reads; None where it is no such update in place."""
    *between, node = following
    update, name = piece_of(node), producer.target
    if update is None or update.target != name:
        return None
    statement = update.statement
    if any(ld.buffer == name and ld != statement.target for ld in loads(statement.value)):
        return None
    boxes = [written_box(piece.statement.target, piece.nest.loops) for piece in (producer, update)]
    sources = {ld.buffer for ld in loads(producer.statement.value)}
    if boxes[0] is None or boxes[0] != boxes[1] or any(sources & written(n) for n in between):
        return None
    filled = _as_read(producer, {buffers[name].dtype}, buffers).value_at(statement.target.indices)
    value = statement.value
    if statement.reduce is not None:
        value = Op(statement.reduce, (statement.target, value))

    def inline(expr: Expr) -> Expr:
        return filled if expr == statement.target else expr

    made = Statement(statement.target, map_expr(value, inline))
    return canonical_subscripts(rebuild(update.nest.loops, (made,))[0])


def _as_read(piece: Piece, readers: set[str], buffers: Mapping[str, Buffer]) -> Piece:
    """With its values as those read them who hold these dtypes."""
    value = as_stored(piece.statement.value, buffers[piece.target].dtype, readers, buffers)
    return replace(piece, statement=replace(piece.statement, value=value))


def _is_table(producer: Piece, buffer: Buffer, nodes: Sequence[Node]) -> bool:
    """Does it fill a small array with what takes long, and is made of nothing that the nodes make? Not the
    angles of a transform, which its stages need one after the other."""
    trips, value = _trip_count(producer.nest.loops), producer.statement.value
    small = trips is not None and trips <= MOST_ELEMENTS and not buffer.dtype.startswith("complex")
    sources = {ld.buffer for ld in loads(value)}
    return small and is_costly(value) and not any(sources & written(n) for n in nodes)


def _may_recompute(node: Node, name: str, producer: Piece, is_table: bool) -> bool:
    """Pointwise consumers whose statements stay of a reasonable size. is_table: is it better read than
    computed again and again?"""
    user = band(node)
    if is_table and (_trip_count(user.loops) or 0) >= LEAST_USES * (_trip_count(producer.nest.loops) or 1):
        read = [ld for s in user.statements for ld in reads(s) if ld.buffer == name]
        if any(_moves_inside(ld, user) for ld in read):
            return False
    if not user.is_perfect or any(
        s.reduce and not all(varies(s.target, it) for it in user.iterators) for s in user.statements
    ):
        return False
    size = _operations(producer.statement.value)
    for statement in user.statements:
        uses = sum(ld.buffer == name for ld in reads(statement))
        if uses and _operations(statement.value) + uses * size > MAX_OPERATIONS:
            return False
    return True


def _moves_inside(load: Load, nest: Band) -> bool:
    """Does the element depend on a loop inside of one that it does not depend on? Compilers compute ahead of
    a loop only what stays the same in it."""
    moving = [varies(load, name) for name in nest.iterators]
    return moving != sorted(moving, reverse=True)


def _operations(expr: Expr) -> int:
    return sum(isinstance(e, Op) for e in subexpressions(expr))


def _adds_no_work(nodes: list[Node], users: list[int], name: str, nest: Band) -> bool:
    """One load in one statement that runs no more often than the producer does."""
    statements = [s for i in users for s in walk((nodes[i],)) if isinstance(s, Statement)]
    reading = [s for s in statements if any(ld.buffer == name for ld in reads(s))]
    if len(reading) != 1 or len({ld for ld in reads(reading[0]) if ld.buffer == name}) != 1:
        return False
    user = band(nodes[users[0]])
    produced, consumed = _trip_count(nest.loops), _trip_count(user.loops)
    if produced is None or consumed is None:
        return sum(1 for _ in user.loops) <= sum(1 for _ in nest.loops) and user.is_perfect
    return consumed <= produced and user.is_perfect


def _trip_count(loops: tuple[Loop, ...]) -> int | None:
    total = 1
    for loop in loops:
        size = extent(loop)
        if size is None:
            return None
        total *= size
    return total


def _safe_in_place(node: Node, sources: set[str], producer: Piece) -> bool:
    """The consumer may overwrite a buffer the producer reads where no iteration reads what another one
    writes: one statement, every iteration of which has a target of its own."""
    if sources.isdisjoint(written(node)):
        return True
    statements = [s for s in walk((node,)) if isinstance(s, Statement)]
    users = [s for s in statements if any(ld.buffer == producer.target for ld in reads(s))]
    writers = [s for s in statements if s.target.buffer in sources]
    if len(users) != 1 or users != writers:
        return False
    target, loops = users[0].target, [lp for lp in walk((node,)) if isinstance(lp, Loop)]
    for use in {ld for ld in reads(users[0]) if ld.buffer == producer.target}:
        for load in loads(producer.value_at(use.indices)):
            read = Load(load.buffer, tuple(map(simplify, load.indices)))
            if read.buffer == target.buffer and not _meet_at_once(read, target, loops):
                return False
    return all(separates(target, lp) for lp in loops)


def _meet_at_once(read: Load, target: Load, loops: list[Loop]) -> bool:
    """Is what an iteration of the loops reads its own target, or else nobody's, or where it may be someone's,
    its own? In some dimension the two differ by a constant, or for every loop there is one in which they are
    the same and tell the iteration (`B[k, j]` beside `B[i, j]`, in a loop over j)."""
    names = {lp.iterator for lp in loops}
    pairs = list(zip(read.indices, target.indices, strict=True))
    if read == target or any(
        constant(Op("sub", pair)) and not any(mentions(pair[0], name) for name in names) for pair in pairs
    ):
        return True
    alike = [affine(one) for one, other in pairs if one == other]
    return all(any(_tells(form, lp.iterator, names) for form in alike) for lp in loops)


def _tells(form: Affine, iterator: str, names: set[str]) -> bool:
    """Does a subscript differ in every iteration of the loop, whatever the other loops do?"""
    others = [atom for atom in form.terms if atom != Symbol(iterator)]
    return form.coefficient(iterator) != 0 and not any(mentions(a, name) for a in others for name in names)
