"""Random programs of several statements, as people write them: statements share arrays, loops and borders."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.corpus.random_nests.basic import stencil_nest
from gnnperf.corpus.random_nests.kernel import WORK_SHARE, Kind, RandomKernel, at, loop_of


def _slices(rank: int, axis: int, chosen: str, others: str = "1:-1") -> str:
    """Subscripts with `chosen` along one axis."""
    return f"[{', '.join(chosen if a == axis else others for a in range(rank))}]"


def _inside(rank: int) -> str:
    return f"[{', '.join(['1:-1'] * rank)}]"


def _difference(k: RandomKernel, name: str, rank: int, axis: int) -> str:
    """Of neighbours along one axis, at the points inside: central or one-sided."""
    ahead, behind = k.rng.choice((("2:", ":-2"), ("2:", "1:-1"), ("1:-1", ":-2")))
    return f"({name}{_slices(rank, axis, ahead)} - {name}{_slices(rank, axis, behind)})"


def several_results(k: RandomKernel) -> None:
    """Derived fields: sums of differences of the same fields, one array each."""
    rank = k.rng.randint(2, 3)
    dims = k.loops(rank, least=12)
    fields = [k.argument(dims) for _ in range(k.rng.randint(1, 3))]
    for _ in range(k.rng.randint(2, 4)):
        terms = [
            f"{k.expressions.constant()} * {_difference(k, k.rng.choice(fields), rank, axis)}"
            for axis in k.rng.sample(range(rank), k.rng.randint(1, 2))
        ]
        k.write(f"{k.argument(dims)}{_inside(rank)} = {k.rng.choice((' + ', ' - ')).join(terms)}")


def bordered(k: RandomKernel) -> None:
    """A stencil inside, and something simpler where it does not reach: copies, constants, mirrored values."""
    rank = k.rng.randint(2, 3)
    dims = k.loops(rank, least=12)
    source, target = k.argument(dims), k.argument(dims)
    form = k.rng.choice(("copy", "constant", "mirror"))
    if form == "copy":
        k.write(f"{target}[:] = {k.rng.choice((source, f'{k.expressions.constant()} * {source}'))}")
    stencil_nest(k, dims, source, target, 1)
    for axis in range(rank if form != "copy" else 0):
        for here, there in (("0", "1"), ("-1", "-2")):
            value = (
                f"{target}{_slices(rank, axis, there, ':')}" if form == "mirror" else k.expressions.constant()
            )
            k.write(f"{target}{_slices(rank, axis, here, ':')} = {value}")


def separable(k: RandomKernel) -> None:
    """Weights along one axis, then along another, perhaps with what is left of the field after it."""
    rank = k.rng.randint(2, 3)
    dims = k.loops(rank, least=16)
    source, radius = k.argument(dims), k.rng.randint(1, 3)
    current, axes = source, k.rng.sample(range(rank), 2)
    for step, axis in enumerate(axes):
        target = k.argument(dims) if step else k.temporary(dims)
        here, i = at(dims), f"i{axis}"
        terms = [
            f"{k.expressions.constant()} * {current}[{here.replace(i, f'{i} + {d}')}]"
            for d in range(-radius, radius + 1)
        ]
        ranges = {n: f"{radius}:{n} - {radius}" if n == dims[axis] or step else f"0:{n}" for n in dims}
        k.body.append(k.map(ranges))
        k.body.append(f"        {target}[{here}] = {' + '.join(terms)}")
        current = target
    if k.rng.random() < 0.4:
        k.write(f"{k.argument(dims)}[:] = {source} - {k.expressions.constant()} * {current}")


def flux_divergence(k: RandomKernel) -> None:
    """Fluxes on the faces between cells, perhaps limited, and what they leave in the cells."""
    rank = k.rng.randint(1, 3)
    dims = k.loops(rank, least=16)
    field, out, here = k.argument(dims), k.argument(dims), at(dims)
    limited, terms = k.rng.random() < 0.5, []
    for axis in k.rng.sample(range(rank), k.rng.randint(1, rank)):
        flux, i = k.temporary(dims), f"i{axis}"
        there = here.replace(i, f"{i} + 1")
        speed = k.rng.choice((k.expressions.constant(), f"{k.argument(dims)}[{here}]"))
        step = f"{speed} * ({field}[{there}] - {field}[{here}])"
        k.body.append(k.map({n: f"0:{n} - 1" if n == dims[axis] else f"0:{n}" for n in dims}))
        value = f"min(max({step}, -0.1), 0.1)" if limited else step
        k.body.append(f"        {flux}[{here}] = {value}")
        terms.append(f"({flux}[{here}] - {flux}[{here.replace(i, f'{i} - 1')}])")
    k.body.append(k.map({n: f"1:{n} - 1" for n in dims}))
    k.body.append(
        f"        {out}[{here}] = {field}[{here}] + {k.expressions.constant()} * ({' + '.join(terms)})"
    )


def coupled_updates(k: RandomKernel) -> None:
    """Several fields that are advanced by one another, in place, point by point."""
    rank = k.rng.randint(1, 3)
    dims = k.loops(rank)
    fields = [k.argument(dims) for _ in range(k.rng.randint(2, 4))]
    for number, field in enumerate(fields):
        other = fields[(number + 1) % len(fields)]
        change = k.rng.choice((f"{other} * {other}", f"({other} - {field})", f"{field} * {other}", other))
        operation = k.rng.choice(("+", "-"))
        k.write(f"{field}[:] = {field} {operation} {k.expressions.constant()} * {change}")


def passes_over_matrix(k: RandomKernel) -> None:
    """Products of a matrix and of its transpose with vectors, one of which may depend on the other."""
    m, n = k.loops(2)
    a = k.argument([m, n])
    x, y, out = k.argument([n]), k.argument([m]), k.argument([n])
    form = k.rng.choice(("normal", "both", "residual", "link"))
    if form == "both":
        k.write(f"{k.argument([m])}[:] = {a} @ {x}", f"{out}[:] = {y} @ {a}")
        return
    product = f"{a} @ {x}"
    if form == "residual":
        product = f"{product} - {y}"
    elif form == "link":
        product = f"1.0 / (1.0 + np.exp(-({product}))) - {y}"
    k.write(f"r = {product}", f"{out}[:] = r @ {a}")


def fields_and_totals(k: RandomKernel) -> None:
    """New fields, and sums or greatest values of them over everything or along an axis."""
    rank = k.rng.randint(1, 3)
    dims = k.loops(rank)
    a, b, new = (k.argument(dims) for _ in range(3))
    k.write(f"{new}[:] = {k.expressions.of_arrays([a, b])}")
    values = (new, f"np.abs({new} - {a})", f"{new} * {a}", f"{a} * {b}")
    for value in k.rng.sample(values, k.rng.randint(1, 3)):
        if rank > 1 and k.rng.random() < 0.5:
            axis = k.rng.randrange(rank)
            kept = [n for n in dims if n != dims[axis]]
            k.write(f"{k.argument(kept)}[:] = np.{k.rng.choice(('sum', 'max'))}({value}, axis={axis})")
        else:
            k.sizes.setdefault("ONE", 1)
            k.nest(dims, [f"{k.argument(['ONE'])}[0] += {new}[{at(dims)}] * {a}[{at(dims)}]"])


def statistics(k: RandomKernel) -> None:
    """Moments along an axis, and the data in terms of them; or a product of what is centred."""
    dims, axis = k.loops(2, points=0.5), k.rng.randrange(2)
    a, back = k.argument(dims), "[:, None]" if axis else ""
    kept = [dims[1 - axis]]
    mean = k.argument(kept)
    k.write(f"{mean}[:] = np.mean({a}, axis={axis})", f"c = {a} - {mean}{back}")
    form = k.rng.choice(("standard", "third", "correlation", "weighted"))
    if form == "third":
        k.write(f"{k.argument(kept)}[:] = np.mean(c * c, axis={axis})")
        k.write(f"{k.argument(kept)}[:] = np.mean(c * c * c, axis={axis})")
        return
    k.write(f"d = np.sqrt(np.mean(c * c, axis={axis}) + 0.1)")
    if form == "standard":
        k.write(f"{k.argument(dims)}[:] = c / d{back}")
    elif form == "weighted":
        k.write(f"{k.argument(kept)}[:] = np.sum(c / d{back} * {k.argument(dims)}, axis={axis})")
    else:
        k.write(f"z = c / d{back}", f"{k.argument(kept)}[:] = np.sum(z * z * z, axis={axis})")
        k.write(f"{k.argument(kept)}[:] = np.max(z, axis={axis})")


def layer(k: RandomKernel) -> None:
    """A product, something added, a nonlinearity; perhaps rows made equal after it."""
    m, n, s = k.loops(3, points=WORK_SHARE)
    x, w, out = k.argument([m, s]), k.argument([s, n]), k.argument([m, n])
    k.write(f"h = {x} @ {w}{k.rng.choice(('', f' + {k.argument([n])}'))}")
    c = k.expressions.constant()
    bends = ("np.maximum(h, 0)", f"h * {c}", "1.0 / (1.0 + np.exp(-h))", "np.tanh(h)", "h * h")
    k.write(f"g = {k.rng.choice(bends)}")
    form = k.rng.choice(("plain", "residual", "rows", "softmax"))
    if form == "rows":
        k.write(f"{out}[:] = g / np.sqrt(np.mean(g * g, axis=1) + 0.1)[:, None]")
    elif form == "softmax":
        k.write("e = np.exp(g - np.max(g, axis=1)[:, None])", f"{out}[:] = e / np.sum(e, axis=1)[:, None]")
    else:
        k.write(f"{out}[:] = g{f' + {k.argument([m, n])}' if form == 'residual' else ''}")


def interactions(k: RandomKernel) -> None:
    """Every point with every other: distances, a function of them, sums over the others."""
    (n,) = k.loops(1, points=0.003)
    k.sizes[n] = max(48, min(k.sizes[n], 1500))
    rank = k.rng.randint(1, 3)
    places = [k.argument([n]) for _ in range(rank)]
    squares = " + ".join(f"({p}[i] - {p}[j]) * ({p}[i] - {p}[j])" for p in places)
    c = k.expressions.constant()
    weight = k.rng.choice(
        (f"np.exp(-r * {c})", f"1.0 / (r + {c})", f"1.0 / np.sqrt(r + {c})", f"max({c} - r, 0)")
    )
    mass = k.argument([n])
    k.body.append(f"    for i, j in dace.map[0:{n}, 0:{n}]:")
    k.write(f"    r = {squares}", f"    f = {weight} * {mass}[j]")
    for p in places[: k.rng.randint(0, rank)]:
        k.write(f"    {k.argument([n])}[i] += f * ({p}[j] - {p}[i])")
    k.write(f"    {k.argument([n])}[i] += f")


def limited(k: RandomKernel) -> None:
    """What depends on comparisons: slopes of least size, thresholds, clipped updates."""
    rank = k.rng.randint(1, 3)
    dims, axis = k.loops(rank, least=12), k.rng.randrange(rank)
    a, slope, out, here, i = k.argument(dims), k.temporary(dims), k.argument(dims), at(dims), f"i{axis}"
    before, after = here.replace(i, f"{i} - 1"), here.replace(i, f"{i} + 1")
    ranges = {n: f"1:{n} - 1" if n == dims[axis] else f"0:{n}" for n in dims}
    k.body.append(k.map(ranges))
    k.write(f"    left = {a}[{here}] - {a}[{before}]", f"    right = {a}[{after}] - {a}[{here}]")
    k.write("    if left * right > 0:", f"        {slope}[{here}] = min(abs(left), abs(right))")
    k.write("    else:", f"        {slope}[{here}] = {k.rng.choice(('0', k.expressions.constant()))}")
    k.body.append(k.map({n: f"2:{n} - 2" if n == dims[axis] else f"0:{n}" for n in dims}))
    change = f"{k.expressions.constant()} * ({slope}[{here}] - {slope}[{before}])"
    k.body.append(f"        {out}[{here}] = {a}[{here}] - {change}")


def recurrence_and_use(k: RandomKernel) -> None:
    """A recurrence along an axis, and what is made of its course."""
    rank = k.rng.randint(2, 3)
    dims, axis = k.loops(rank, least=8), k.rng.choice((0, rank - 1))
    a, state, out, here, i = k.argument(dims), k.argument(dims), k.argument(dims), at(dims), f"i{axis}"
    n, others = dims[axis], [d for d in dims if d != dims[axis]]
    c = k.expressions.constant()
    k.body.append(k.map({d: f"0:{d}" for d in others}))
    k.write(f"    for {i} in range(1, {n}):")
    k.write(f"        {state}[{here}] = {c} * {state}[{here.replace(i, f'{i} - 1')}] + 0.5 * {a}[{here}]")
    use = k.rng.choice((f"{state} - {a}", f"{state} * {a}", f"np.maximum({state}, {a})"))
    k.write(f"{out}[:] = {use}")
    if k.rng.random() < 0.4:
        k.write(f"{k.argument(others)}[:] = np.max({out}, axis={axis})")


def gathered(k: RandomKernel) -> None:
    """Values at the ends of edges, a function of both, added up at one of them."""
    (n,) = k.loops(1, points=0.2)
    k.sizes["E"] = round(k.sizes[n] * k.rng.choice((2, 4, 6)))
    source, target, x = k.index(["E"], n), k.index(["E"], n), k.argument([n])
    c = k.expressions.constant()
    change = k.rng.choice(
        (f"({x}[{source}[e]] - {x}[{target}[e]])", f"{x}[{source}[e]] * {k.argument(['E'])}[e]")
    )
    message, out = k.temporary(["E"]), k.argument([n])
    k.body.append("    for e in dace.map[0:E]:")
    k.body.append(f"        {message}[e] = {c} * {change}")
    k.body.append("    for e in dace.map[0:E]:")
    k.body.append(f"        {out}[{target}[e]] += {message}[e]")
    k.write(f"{k.argument([n])}[:] = {x} + {c} * {out}")


def contraction_chain(k: RandomKernel) -> None:
    """Two contractions, the second over what the first leaves: triple products, factor updates."""
    a, b, c = k.loops(3, points=WORK_SHARE)
    k.sizes["R"] = k.rng.choice((4, 8, 16, 24))
    cube, left, right = k.argument([a, b, c]), k.argument([b, "R"]), k.argument([c, "R"])
    half, out = k.temporary([a, b, "R"]), k.argument([a, "R"])
    zero = k.map({n: f"0:{n}" for n in (a, b, "R")})
    i, j, m, r = (loop_of(n) for n in (a, b, c, "R"))
    k.body += [zero, f"        {half}[{i}, {j}, {r}] = 0"]
    k.body.append(k.map({n: f"0:{n}" for n in (a, b, c, "R")}))
    k.body.append(f"        {half}[{i}, {j}, {r}] += {cube}[{i}, {j}, {m}] * {right}[{m}, {r}]")
    k.body.append(k.map({n: f"0:{n}" for n in (a, b, "R")}))
    k.body.append(f"        {out}[{i}, {r}] += {half}[{i}, {j}, {r}] * {left}[{j}, {r}]")


def nested_steps(k: RandomKernel) -> None:
    """Steps in time of two or three statements: a stencil, what reacts in each cell, what is kept inside."""
    rank = k.rng.randint(1, 2)
    dims = k.loops(rank, points=0.5, least=16)
    u, v, here = k.argument(dims), k.argument(dims), at(dims)
    new = k.temporary(dims)
    k.write(f"for t in range({k.rng.randint(2, 5)}):")
    stencil_nest(k, dims, u, new, 1, depth=2)
    inside = {n: f"1:{n} - 1" for n in dims}
    c = k.expressions.constant
    reaction = k.rng.choice(
        (f"{u}[{here}] * {v}[{here}] * {v}[{here}]", f"{u}[{here}] - {v}[{here}]", f"{v}[{here}]")
    )
    k.body.append(k.map(inside, depth=2))
    k.write(f"        {v}[{here}] = {v}[{here}] + {c()} * ({reaction})")
    k.body.append(k.map(inside, depth=2))
    k.write(f"        {u}[{here}] = 0.1 * {new}[{here}] + {c()} * {v}[{here}]")


KINDS: Mapping[str, Kind] = {
    "several_results": several_results,
    "bordered": bordered,
    "separable": separable,
    "flux_divergence": flux_divergence,
    "coupled_updates": coupled_updates,
    "passes_over_matrix": passes_over_matrix,
    "fields_and_totals": fields_and_totals,
    "statistics": statistics,
    "layer": layer,
    "interactions": interactions,
    "limited": limited,
    "recurrence_and_use": recurrence_and_use,
    "gathered": gathered,
    "contraction_chain": contraction_chain,
    "nested_steps": nested_steps,
}
