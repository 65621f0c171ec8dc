"""Random straight-line programs: a few nests over a few arrays, with every dependence between them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from nests.examples import accumulate, add, array, assign, load, loop, mul, op

from gnnperf.nests import Buffer, Expr, LoopNest, Node
from gnnperf.nests.ir import Reduction

ROWS, COLUMNS = 4, 6
_SHAPES = {"m": (ROWS, COLUMNS), "r": (ROWS,), "c": (COLUMNS,), "s": ()}


@dataclass(frozen=True)
class Program:
    """`items` are executed in order; every buffer is written before it is read."""

    items: list[tuple[Node, ...]]
    buffers: dict[str, Buffer]

    @property
    def live_out(self) -> set[str]:
        return {n for n, b in self.buffers.items() if not b.transient and b.scope == "global"}

    def nest(self) -> LoopNest:
        return LoopNest("program", self.buffers, tuple(n for item in self.items for n in item))


def random_program(rng: Random) -> Program:
    """Matrices m*, row and column vectors r*, c*, scalars s*; some of them scratch of another type."""
    buffers: dict[str, Buffer] = {}
    for kind, shape in _SHAPES.items():
        for number in range(3):
            scratch = number > 0
            dtype = (
                rng.choice(["float64", "float64", "float64", "float32", "int32"]) if scratch else "float64"
            )
            buffers[f"{kind}{number}"] = array(f"{kind}{number}", *shape, dtype=dtype, transient=scratch)
    buffers |= {t: array(t, transient=True, scope="local") for t in ("t", "u")}
    ready = {n for n, b in buffers.items() if not b.transient}
    items: list[tuple[Node, ...]] = []
    for _ in range(rng.randint(2, 7)):
        writer = rng.choice([_pointwise, _pointwise, _initialised, _reduced, _fused, _recurrent])
        item, target = writer(rng, buffers, ready)
        items.append(item)
        ready.add(target)
    return Program(items, buffers)


def _names(rng: Random, kind: str) -> str:
    return f"{kind}{rng.randrange(3)}"


def _element(name: str) -> Expr:
    return load(name, *{"m": "ij", "r": "i", "c": "j", "s": ""}[name[0]])


def _value(rng: Random, ready: set[str], kinds: str) -> Expr:
    """One to three operands that are ready, at the current point."""
    choices = sorted(n for n in ready if n[0] in kinds)
    value = _element(rng.choice(choices))
    for _ in range(rng.randint(0, 2)):
        value = op(rng.choice(["add", "sub", "mul", "max"]), value, _element(rng.choice(choices)))
    return op("sub", value, 0.3) if rng.random() < 0.3 else value


def _wrapped(rng: Random, kind: str, *body: Node) -> Node:
    names = {"m": "ij", "r": "i", "c": "j", "s": ""}[kind]
    order = list(names)
    rng.shuffle(order)
    for name in order:
        body = (loop(name, ROWS if name == "i" else COLUMNS, *body),)
    return body[0]


def _pointwise(rng: Random, buffers: dict[str, Buffer], ready: set[str]) -> tuple[tuple[Node, ...], str]:
    kind = rng.choice("mmrc")
    target = _names(rng, kind)
    kinds = {"m": "mrcs", "r": "rs", "c": "cs"}[kind]
    return (_wrapped(rng, kind, assign(_element(target), _value(rng, ready, kinds))),), target


def _initialised(rng: Random, buffers: dict[str, Buffer], ready: set[str]) -> tuple[tuple[Node, ...], str]:
    """A constant, then a reduction: as frontends write `sum`."""
    kind = rng.choice("rcs")
    target = _names(rng, kind)
    by: Reduction = rng.choice(["add", "max"])
    sources = ready - {target}
    value = _value(rng, sources, "mrcs")
    clear = _wrapped(rng, kind, assign(_element(target), float(rng.randint(-1, 1))))
    return (clear, _wrapped(rng, "m", accumulate(_element(target), value, by))), target


def _reduced(rng: Random, buffers: dict[str, Buffer], ready: set[str]) -> tuple[tuple[Node, ...], str]:
    target = rng.choice(sorted(n for n in ready if n[0] in "rcs"))
    value = _value(rng, ready - {target}, "mrcs")
    return (_wrapped(rng, "m", accumulate(_element(target), value)),), target


def _fused(rng: Random, buffers: dict[str, Buffer], ready: set[str]) -> tuple[tuple[Node, ...], str]:
    """Several statements in one nest, tied by local scalars."""
    target, other = _names(rng, "m"), rng.choice(sorted(n for n in ready if n[0] == "m"))
    body = [
        assign(load("t"), _value(rng, ready, "mrcs")),
        assign(load("u"), mul(_value(rng, ready, "mrcs"), 0.5)),
        assign(_element(target), add(load("t"), load("u"))),
        assign(_element(other), op("sub", _element(other), load("t"))),
    ]
    if rng.random() < 0.5:
        body.pop()
    return (_wrapped(rng, "m", *body),), target


def _recurrent(rng: Random, buffers: dict[str, Buffer], ready: set[str]) -> tuple[tuple[Node, ...], str]:
    """Along the columns, from left to right."""
    target = rng.choice(sorted(n for n in ready if n[0] == "m"))
    left = load(target, "i", op("sub", "j", 1))
    body = assign(_element(target), mul(0.5, add(left, _value(rng, ready, "mrcs"))))
    return (loop("i", ROWS, loop("j", COLUMNS, body, start=1, independent=False)),), target
