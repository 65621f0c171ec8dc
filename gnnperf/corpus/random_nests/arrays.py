"""Random kernels of array programs: orders of axes, strides, conditions, functions, all pairs."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.corpus.random_nests.kernel import WORK_SHARE, Kind, RandomKernel, at, loop_of


def permutation(k: RandomKernel) -> None:
    """Axes in another order, with a little arithmetic on the way."""
    dims = k.loops(k.rng.randint(2, 4))
    turned = list(dims)
    while turned == dims:
        k.rng.shuffle(turned)
    value = k.element(turned)
    if k.rng.random() < 0.7:
        other = k.element(k.rng.choice((dims, turned, dims[-1:])))
        value = k.rng.choice((f"{value} + {other}", f"{value} * {other}", f"{value} - 0.5 * {other}"))
    k.nest(dims, [f"{k.element(dims)} = {value}"])


def broadcast(k: RandomKernel) -> None:
    """Arrays of fewer axes against one of all: scales, shifts, masks."""
    dims = k.loops(k.rng.randint(2, 4))
    parts = [sorted(k.rng.sample(dims, k.rng.randint(1, len(dims) - 1))) for _ in range(k.rng.randint(1, 3))]
    lines, value = k.expressions.combine([k.element(dims), *map(k.element, parts)])
    k.nest(dims, [*lines, f"{k.element(dims)} = {value}"])


def strided(k: RandomKernel) -> None:
    """Every second or third element, backwards, put apart or together."""
    dims = k.loops(k.rng.randint(1, 3))
    step, axis = k.rng.randint(2, 4), k.rng.randrange(len(dims))
    n = dims[axis]
    long = [f"{step} * {d}" if d == n else d for d in dims]

    def jump(array: str, offset: int) -> str:
        subscripts = [f"{step} * {loop_of(d)} + {offset}" if d == n else loop_of(d) for d in dims]
        return f"{array}[{', '.join(subscripts)}]"

    a = k.argument(long)
    if k.rng.random() < 0.5:  # together
        terms = [f"{k.expressions.constant()} * {jump(a, offset)}" for offset in range(step)]
        k.nest(dims, [f"{k.element(dims)} = {' + '.join(terms[: k.rng.randint(1, step)])}"])
        return
    backward = [f"{d} - 1 - {loop_of(d)}" if k.rng.random() < 0.5 else loop_of(d) for d in dims]
    source = f"{k.argument(dims)}[{', '.join(backward)}]"
    writes = [f"{jump(a, offset)} = {k.expressions.constant()} * {source}" for offset in range(step)]
    k.nest(dims, writes[: k.rng.randint(1, step)])


def conditional(k: RandomKernel) -> None:
    """Clipping, thresholds, masks, and choices among expressions."""
    dims = k.loops(k.rng.randint(1, 3))
    a, b, target, c = k.element(dims), k.load(dims), k.element(dims), k.expressions.constant
    form = k.rng.choice(("clip", "branch", "nested", "accumulate", "where"))
    if form == "clip":
        k.nest(dims, [f"{target} = min(max({a} - {c()}, {c()} * {b}), {c()})"])
    elif form == "branch":
        k.nest(dims, [f"if {a} > {c()}:", f"    {target} = {a} * {b}", "else:", f"    {target} = {a} + {b}"])
    elif form == "nested":
        inner = [f"    if {b} > {c()}:", f"        {target} = {b} - {a}"]
        inner += ["    else:", f"        {target} = {a} * {b}"]
        k.nest(dims, [f"if {a} > {c()}:", *inner, "else:", f"    {target} = {a}"])
    elif form == "accumulate":
        k.nest(dims, [f"if {a} > {c()}:", f"    {k.element(dims[:1])} += {b}"])
    else:
        x, y = k.argument(dims), k.argument(dims)
        k.write(f"{k.argument(dims)}[:] = np.where({x} > {y}, {x} - {y}, {c()} * {y})")


def transcendental(k: RandomKernel) -> None:
    """Exponentials, logarithms, roots and angles of one another."""
    dims = k.loops(k.rng.randint(1, 3), points=0.3)
    c = k.expressions.constant
    lines = [f"x = {k.element(dims)}", f"y = {k.load(dims)}"]
    for step in range(k.rng.randint(1, 3)):
        form = k.rng.choice((
            "np.exp(-{x} * {y})", "np.log({x} + {y} * {y} + {c})", "np.sqrt({x} * {x} + {y} * {y} + {c})",
            "np.sin({x}) + {c} * np.cos({y})", "np.tanh({x} - {y})", "1.0 / (1.0 + np.exp({y} - {x}))",
        ))  # fmt: skip
        lines.append(f"z{step} = {form.format(x='x' if not step else f'z{step - 1}', y='y', c=c())}")
    k.nest(dims, [*lines, f"{k.element(dims)} = z{len(lines) - 3}"])


def pairwise(k: RandomKernel) -> None:
    """All points of one set with all of another: distances, or sums of what they do to one another."""
    form = k.rng.choice(("squared", "absolute", "kernel", "sum", "force"))
    deep = form in ("squared", "absolute")
    m, n = k.loops(2, points=0.3 if deep else 1.0)
    if deep:
        d = k.size(k.rng.choice((3, 8, 16, 32)))
        k.sizes[m] = max(8, k.sizes[m] // 3)
        left, right = ([m, d], [n, d]) if k.rng.random() < 0.6 else ([d, m], [d, n])
        x, y = k.element(left), k.element(right)
        value = f"({x} - {y}) * ({x} - {y})" if form == "squared" else f"abs({x} - {y})"
        k.nest([m, n, d], [f"{k.element([m, n])} += {value}"])
        return
    x, y = k.element([m]), k.element([n])
    if form == "force":
        u, v = k.element([m]), k.element([n])
        lines = [
            f"p = {x} - {y}",
            f"q = {u} - {v}",
            f"r = 1.0 / (p * p + q * q + {k.expressions.constant()})",
        ]
        k.nest([m, n], [*lines, f"{k.element([m])} += p * r * np.sqrt(r)"])
    elif form == "sum":
        k.nest([m, n], [f"{k.element([m])} += np.exp(-2.0 * ({x} - {y}) * ({x} - {y}))"])
    else:
        k.nest(
            [m, n], [f"{k.element([m, n])} = np.exp(-({x} - {y}) * ({x} - {y}) * {k.expressions.constant()})"]
        )


def partial_sums(k: RandomKernel) -> None:
    """Sums over some axes of products with arrays of fewer axes: moments, weighted means, integrals."""
    dims = k.loops(k.rng.randint(3, 4), points=WORK_SHARE / 3)
    summed = k.rng.sample(dims, k.rng.randint(1, 2))
    kept = [d for d in dims if d not in summed]
    value = " * ".join([k.element(dims), *(k.element([d]) for d in summed)])
    k.nest(dims, [f"{k.argument(kept)}[{at(kept)}] += {value}"])


KINDS: Mapping[str, Kind] = {
    "permutation": permutation,
    "broadcast": broadcast,
    "strided": strided,
    "conditional": conditional,
    "transcendental": transcendental,
    "pairwise": pairwise,
    "partial_sums": partial_sums,
}
