"""Clean-up of translated code: what DaCe expressed through scalar temporaries, symbols and branches
becomes plain expressions, so that loops show the accesses they really make.

Works on one item. Every step preserves what the item computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gnnperf.frontends.dace.dtypes import expression_dtype
from gnnperf.nests.analysis import accesses, read, written
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Reduction,
    Statement,
    children,
    loads,
    map_node,
    reads,
    walk,
)  # fmt: skip
from gnnperf.nests.normalise import forward_substitute

Block = tuple[Node, ...]
_IDENTITY: Mapping[str, float] = {"add": 0, "mul": 1}


def tidy(body: Block, buffers: dict[str, Buffer]) -> Block:
    """Repeat the steps until nothing changes."""
    while True:
        before = body
        for step in (
            _split_versions,
            _merge_arms,
            _forward_scalars,
            _find_reductions,
            _write_through,
            _forward_arrays,
        ):
            body = _in_every_block(body, buffers, step)
        if body == before:
            return body


def _in_every_block(body: Block, buffers: dict[str, Buffer], step: object) -> Block:
    """Apply `step(block, all nodes, buffers)` to the blocks, outermost first."""
    root = body

    def visit(block: Block) -> Block:
        block = step(block, root, buffers)  # type: ignore[operator]
        return tuple(replace(n, body=visit(n.body)) if isinstance(n, Loop) else n for n in block)

    return visit(body)


# --------------------------------------------------------------------------- helpers


def _uses(nodes: Iterable[Node]) -> Counter[str]:
    """How often every buffer is loaded."""
    return Counter(a.load.buffer for n in nodes for a in accesses(n) if not a.is_write)


def _writes(nodes: Iterable[Node]) -> Counter[str]:
    return Counter(a.load.buffer for n in nodes for a in accesses(n) if a.is_write)


def _is_local_scalar(name: str, buffers: Mapping[str, Buffer]) -> bool:
    return buffers[name].scope == "local" and not buffers[name].shape


def _operations(expr: Expr) -> int:
    """Operations on values; arithmetic inside subscripts does not count."""
    if isinstance(expr, Load):
        return 0
    own = isinstance(expr, Op) and not expr.name.startswith("cast:")
    return own + sum(_operations(c) for c in children(expr))


def _conjuncts(guard: Expr | None) -> list[Expr]:
    if guard is None:
        return []
    if isinstance(guard, Op) and guard.name == "and":
        return [c for a in guard.args for c in _conjuncts(a)]
    return [guard]


def _conjunction(terms: list[Expr]) -> Expr | None:
    result: Expr | None = None
    for term in terms:
        result = term if result is None else Op("and", (result, term))
    return result


# --------------------------------------------------------------------------- branches


def _merge_arms(block: Block, root: Block, buffers: Mapping[str, Buffer]) -> Block:
    """`if c: x = a` and `if not c: x = b` become `x = select(c, a, b)`; `x = a; if c: x = b` too."""
    nodes = list(block)
    position = 0
    while position < len(nodes):
        merged = _merge_at(nodes, position)
        if not merged:
            position += 1
    return tuple(nodes)


def _merge_at(nodes: list[Node], position: int) -> bool:
    first = nodes[position]
    if not isinstance(first, Statement):
        return False
    for later in range(position + 1, len(nodes)):
        second = nodes[later]
        if isinstance(second, Statement) and second.target == first.target and second.reduce == first.reduce:
            merged = _merged(first, second)
            between = nodes[position + 1 : later]
            if merged is not None and _can_move_up(second, between):
                nodes[position] = merged
                del nodes[later]
                return True
        if first.target.buffer in {a.load.buffer for a in accesses(second)}:
            return False
    return False


def _merged(first: Statement, second: Statement) -> Statement | None:
    one, two = _conjuncts(first.guard), _conjuncts(second.guard)
    if one and two and one[:-1] == two[:-1]:
        c, d = one[-1], two[-1]
        for holds, fails, a, b in ((c, d, first, second), (d, c, second, first)):
            if fails == Op("not", (holds,)):
                value = Op("select", (holds, a.value, b.value))
                return replace(first, value=value, guard=_conjunction(one[:-1]))
    if first.reduce is None and len(two) == len(one) + 1 and two[: len(one)] == one:
        if first.target.buffer not in {ld.buffer for ld in reads(second)}:
            return replace(first, value=Op("select", (two[-1], second.value, first.value)))
    return None


def _can_move_up(statement: Statement, between: list[Node]) -> bool:
    needed = {ld.buffer for ld in reads(statement)}
    return all(
        needed.isdisjoint(written(n)) and statement.target.buffer not in read(n) | written(n) for n in between
    )


# --------------------------------------------------------------------------- scalars


def _split_versions(block: Block, root: Block, buffers: dict[str, Buffer]) -> Block:
    """Give a local scalar that is set several times in one block a new name from each time on."""
    here, everywhere = _uses(block) + _writes(block), _uses(root) + _writes(root)
    nodes = list(block)
    for name in [n for n in here if _is_local_scalar(n, buffers) and here[n] == everywhere[n]]:
        touching = [i for i, n in enumerate(nodes) if _touches(n, name)]
        settings = [i for i in touching if _sets(nodes[i], name)]
        if len(settings) < 2 or settings[0] != touching[0]:
            continue
        for position in reversed(settings[1:]):
            version = next(v for k in range(1, 1 << 30) if (v := f"{name}_v{k}") not in buffers)
            buffers[version] = replace(buffers[name], name=version)
            setting = nodes[position]
            assert isinstance(setting, Statement)
            nodes[position] = replace(setting, target=Load(version))
            for i in range(position + 1, len(nodes)):
                nodes[i] = _retarget(nodes[i], name, Load(version))
    return tuple(nodes)


def _sets(node: Node, name: str) -> bool:
    plain = isinstance(node, Statement) and node.reduce is None and node.guard is None
    return plain and node.target.buffer == name  # type: ignore[union-attr]


def _forward_scalars(block: Block, root: Block, buffers: Mapping[str, Buffer]) -> Block:
    """Replace a local scalar by the expression it was given, where that adds no work."""
    nodes = list(block)
    total_uses, total_writes = _uses(root), _writes(root)
    position = 0
    while position < len(nodes):
        node = nodes[position]
        if (
            isinstance(node, Statement)
            and node.reduce is None
            and _is_local_scalar(node.target.buffer, buffers)
            and total_writes[node.target.buffer] == 1
            and _forward(nodes, position, node, total_uses, buffers)
        ):
            del nodes[position]
            total_uses, total_writes = _uses(nodes), _writes(nodes)
            if block is not root:  # the root does not see this block's changes: count conservatively
                total_uses = _uses(root) | total_uses
                total_writes = _writes(root) | total_writes
            continue
        position += 1
    return tuple(nodes)


def _forward(
    nodes: list[Node], position: int, producer: Statement, total: Counter[str], buffers: Mapping[str, Buffer]
) -> bool:
    name = producer.target.buffer
    after = nodes[position + 1 :]
    uses = _uses(after)[name]
    if uses < total[name] and uses == 0:
        return False
    if uses == 0:
        return True
    last = max(i for i, n in enumerate(after) if _uses([n])[name])
    sources = {ld.buffer for ld in reads(producer)}
    for i, node in enumerate(after[: last + 1]):
        final_statement = i == last and isinstance(node, Statement)
        if not final_statement and not sources.isdisjoint(written(node)):
            return False
    if not all(_guarded_alike(n, name, producer.guard) for n in after[: last + 1]):
        return False
    repeated = any(
        isinstance(n, Loop) and any(_uses(m.body)[name] for m in walk((n,)) if isinstance(m, Loop))
        for n in after
    )
    distinct_loads = len(set(loads(producer.value)))
    cheap = distinct_loads <= 1 and (_operations(producer.value) == 0 or _is_index(producer, buffers))
    if not cheap and (uses > 1 or repeated):
        return False
    value = _converted(producer.value, buffers[name].dtype, buffers)
    for i in range(position + 1, len(nodes)):
        nodes[i] = map_node(nodes[i], lambda e: value if isinstance(e, Load) and e.buffer == name else e)
    return True


def _guarded_alike(node: Node, name: str, guard: Expr | None) -> bool:
    """Every use of `name` happens only where the producer's guard holds."""
    wanted = _conjuncts(guard)
    if not wanted:
        return True
    for inner in walk((node,)):
        if isinstance(inner, Loop):
            if any(ld.buffer == name for b in (inner.start, inner.stop) for ld in loads(b)):
                return False
        elif (
            any(ld.buffer == name for ld in reads(inner)) and _conjuncts(inner.guard)[: len(wanted)] != wanted
        ):
            return False
    return True


def _is_index(producer: Statement, buffers: Mapping[str, Buffer]) -> bool:
    """Integer arithmetic for subscripts, or one comparison: as cheap as keeping the scalar."""
    dtype = buffers[producer.target.buffer].dtype
    return dtype.startswith(("int", "uint")) and _operations(producer.value) <= 3


def _converted(value: Expr, dtype: str, buffers: Mapping[str, Buffer]) -> Expr:
    found = expression_dtype(value, buffers)
    integers = found.startswith(("int", "uint")) and dtype.startswith(("int", "uint"))
    if found == dtype or integers or (isinstance(value, Const) and dtype.startswith("float")):
        return value
    return Op(f"cast:{dtype}", (value,))


# --------------------------------------------------------------------------- reductions


def _find_reductions(block: Block, root: Block, buffers: Mapping[str, Buffer]) -> Block:
    """`x = x + e` is `x += e` where `e` does not read `x`."""
    return tuple(_as_reduction(n) if isinstance(n, Statement) and n.reduce is None else n for n in block)


def _as_reduction(statement: Statement) -> Statement:
    found = _rest_of_sum(statement.value, statement.target)
    kind: Reduction = "add"
    if found is None and isinstance(statement.value, Op) and statement.value.name in ("mul", "min", "max"):
        left, right = statement.value.args
        if statement.target in (left, right):
            kind = statement.value.name  # type: ignore[assignment]
            found = right if left == statement.target else left
    if found is None or any(ld.buffer == statement.target.buffer for ld in loads(found)):
        return statement
    return replace(statement, value=found, reduce=kind)


def _rest_of_sum(value: Expr, target: Load) -> Expr | None:
    """What is added to `target` in a chain of sums that starts from it; None if it is not one."""
    if not isinstance(value, Op) or value.name not in ("add", "sub"):
        return None
    left, right = value.args
    if left == target:
        return right if value.name == "add" else Op("neg", (right,))
    if right == target and value.name == "add":
        return left
    rest = _rest_of_sum(left, target)
    if rest is not None:
        return Op(value.name, (rest, right))
    rest = _rest_of_sum(right, target) if value.name == "add" else None
    return None if rest is None else Op("add", (left, rest))


# --------------------------------------------------------------------------- results


def _write_through(block: Block, root: Block, buffers: Mapping[str, Buffer]) -> Block:
    """Compute in place what was computed in a local scalar and then stored: `t = 0; t += ...; y[i] = t`."""
    nodes = list(block)
    everything = _uses(root) + _writes(root)
    for position in range(len(nodes) - 1, 0, -1):
        store = nodes[position]
        if not isinstance(store, Statement) or not isinstance(store.value, Load) or store.guard is not None:
            continue
        name = store.value.buffer
        if not _is_local_scalar(name, buffers) or buffers[name].dtype != buffers[store.target.buffer].dtype:
            continue
        first = next((i for i, n in enumerate(nodes) if _touches(n, name)), position)
        region = nodes[first:position]
        if first == position or (_uses(region) + _writes(region))[name] + 1 != everything[name]:
            continue
        if any(_touches(n, store.target.buffer) for n in region):
            continue
        addressed = {ld.buffer for i in store.target.indices for ld in loads(i)}
        if any(not addressed.isdisjoint(written(n)) for n in region):
            continue
        start = nodes[first]
        if not isinstance(start, Statement) or start.reduce is not None or start.guard is not None:
            continue
        if store.reduce is not None and not _accumulates(region, name, store.reduce, start):
            continue
        kept = region[1:] if store.reduce is not None else region
        nodes[first : position + 1] = [_retarget(n, name, store.target) for n in kept]
        return _write_through(tuple(nodes), root, buffers) if block is root else tuple(nodes)
    return tuple(nodes)


def _touches(node: Node, name: str) -> bool:
    return any(a.load.buffer == name for a in accesses(node))


def _accumulates(region: list[Node], name: str, kind: Reduction, start: Statement) -> bool:
    """The scalar starts from the neutral element and is only combined with, by the same operation."""
    if not isinstance(start.value, Const) or start.value.value != _IDENTITY.get(kind):
        return False
    rest = [s for s in walk(tuple(region[1:])) if isinstance(s, Statement)]
    combining = all(s.reduce == kind for s in rest if s.target.buffer == name)
    return combining and not _uses(region)[name]


def _retarget(node: Node, name: str, target: Load) -> Node:
    return map_node(node, lambda e: target if isinstance(e, Load) and e.buffer == name else e)


# --------------------------------------------------------------------------- private arrays


def _forward_arrays(block: Block, root: Block, buffers: Mapping[str, Buffer]) -> Block:
    """Forward substitution of private arrays inside loops (normalisation does it at the top)."""
    here = {w for n in block for w in written(n)}
    local = {
        name
        for name in here
        if buffers[name].scope == "local" and buffers[name].shape
        and _uses(block)[name] == _uses(root)[name] and _writes(block)[name] == _writes(root)[name]
    }  # fmt: skip
    if not local:
        return block
    treated = {k: replace(b, scope="global" if k in local else b.scope) for k, b in buffers.items()}
    others = {k: replace(b, transient=k in local) for k, b in treated.items()}
    return forward_substitute(block, others)
