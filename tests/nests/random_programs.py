"""Random straight-line programs: a few nests over a few arrays, with every dependence between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op

from gnnperf.nests import Buffer, Expr, LoopNest, Node
from gnnperf.nests.ir import Load, Reduction

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


FLOW_ROWS, FLOW_COLUMNS = 21, 11


def random_flow(rng: Random) -> LoopNest:
    """Steps of several sweeps: copies, stencils inside borders, borders, scalars set between them, rows that
    live for one iteration, and steps within a step. A, B, C are arguments; P, Q live for one step."""
    names = {"i": FLOW_ROWS, "j": FLOW_COLUMNS}
    buffers = [array(n, *names.values()) for n in "ABC"] + [array("dt", 4)]
    buffers += [array(n, *names.values(), transient=True) for n in "PQ"]
    buffers += [array(n, transient=True, scope="local") for n in "stu"]
    buffers.append(array("row", FLOW_COLUMNS, transient=True, scope="local"))
    ready, scalars = set("ABC"), set[str]()

    def element(name: str, rows: int = 0, columns: int = 0) -> Load:
        return load(name, add("i", rows) if rows else "i", add("j", columns) if columns else "j")

    def scaled(value: Expr) -> Expr:
        return mul(load(rng.choice(sorted(scalars))), value) if scalars and rng.random() < 0.6 else value

    def copied() -> list[Node]:
        source, target = rng.choice(sorted(ready)), rng.choice("PQABC")
        ready.add(target)
        return [loops(names, assign(element(target), scaled(element(source))))]

    def stencil() -> list[Node]:
        source, target = rng.choice(sorted(ready)), rng.choice(sorted(ready))
        reach = 0 if source == target else 1
        value: Expr = element(target, 1, 1)
        for _ in range(rng.randint(1, 3)):
            near = element(source, 1 + rng.randint(-reach, reach), 1 + rng.randint(-reach, reach))
            value = add(mul(0.5, value), mul(0.4, near))
        inside = {"i": FLOW_ROWS - 2, "j": FLOW_COLUMNS - 2}
        return [loops(inside, assign(element(target, 1, 1), scaled(value)))]

    def border() -> list[Node]:
        target, at = rng.choice(sorted(ready)), rng.choice([0, FLOW_ROWS - 1])
        inner = load(target, 1 if at == 0 else at - 1, "j")
        if rng.random() < 0.5:
            return [loop("j", FLOW_COLUMNS, assign(load(target, at, "j"), scaled(inner)))]
        return [loop("i", FLOW_ROWS, assign(load(target, "i", 0), scaled(load(target, "i", 1))))]

    def scalar() -> list[Node]:
        name = rng.choice("st")
        scalars.add(name)
        source = load("dt", "n") if rng.random() < 0.5 else load(rng.choice(sorted(ready)), 2, 3)
        return [assign(load(name), mul(0.5, source))]

    def rows() -> list[Node]:
        source, target = rng.choice(sorted(ready)), rng.choice(sorted(ready))
        width = FLOW_COLUMNS
        mirrored = load("row", op("sub", width - 1, "j"))
        return [
            loop(
                "i",
                FLOW_ROWS,
                assign(load("u"), scaled(load(source, "i", 0))),
                loop("j", width, assign(load("row", "j"), mul(load("u"), load(source, "i", "j")))),
                loop("j", width, assign(load(target, "i", "j"), add(mul(0.5, mirrored), load("u")))),
            )
        ]

    def steps() -> list[Node]:
        inner = [*copied(), *stencil(), *(border() if rng.random() < 0.7 else ())]
        return [loop("q", 2, *inner, independent=False)]

    body: list[Node] = []
    for _ in range(rng.randint(3, 8)):
        body += rng.choice([copied, stencil, stencil, border, scalar, scalar, rows, steps])()
    return nest("flow", buffers, loop("n", 3, *body, independent=False))


STENCIL_ROWS, STENCIL_COLUMNS = 23, 9


def random_stencils(rng: Random) -> LoopNest:
    """A chain of two to five stencils, each inside borders of its own and counted from anywhere, in scratch
    arrays that all but the last leaves; some are filled ahead, added to, or left as a result, too."""
    shape = (STENCIL_ROWS, STENCIL_COLUMNS)
    buffers = [array("a", *shape), array("out", *shape), array("other", *shape)]
    body: list[Node] = []

    def sweep(target: str, border: int, value: Callable[[int], Expr], adds: bool = False) -> Node:
        shift = rng.randint(-1, 2)
        place = load(target, add("i", shift), "j")
        written = accumulate(place, value(shift)) if adds else assign(place, value(shift))
        columns = loop("j", STENCIL_COLUMNS - 1, written, start=1)
        return loop("i", STENCIL_ROWS - border - shift, columns, start=border - shift)

    def reading(names: Sequence[str], reach: int) -> Callable[[int], Expr]:
        offsets = [
            (rng.choice(names), rng.randint(-reach, reach), rng.randint(-1, 1))
            for _ in range(rng.randint(1, 3))
        ]

        def value(shift: int) -> Expr:
            reads = [load(n, add("i", shift + up), add("j", right)) for n, up, right in offsets]
            return mul(0.3, add(mul(0.5, reads[0]), *reads))

        return value

    chain = ["a"]
    for number in range(rng.randint(1, 4)):
        name = f"t{number}"
        buffers.append(array(name, *shape, transient=True))
        filled = loops({"i": STENCIL_ROWS, "j": STENCIL_COLUMNS}, assign(load(name, "i", "j"), 0.25 * number))
        reach = rng.randint(0, 2)
        body += [filled, sweep(name, reach, reading(chain, reach))]
        if rng.random() < 0.2:
            body.append(sweep(name, 3, reading(["a"], 1), adds=True))
        chain = [*chain[-2:], name]
    body.append(sweep("out", rng.randint(1, 3), reading(chain[-2:], 1)))
    if rng.random() < 0.5:
        named = rng.choice([["a"], chain, ["out"]])
        body.append(sweep("other", 2, reading(named, 0 if named == ["out"] else 2)))
    return nest("stencils", buffers, *body)
