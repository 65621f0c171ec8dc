"""Random kernels of neural networks: convolutions, pooling, gates, attention, numbers of few bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gnnperf.corpus.random_nests.kernel import WORK_SHARE, Kind, RandomKernel, at, loop_of


def _image(k: RandomKernel, rank: int, points: float, channels: Sequence[int]) -> tuple[list[str], list[str]]:
    """Sizes of an image whose points, times these channels, are about a usual number; and those channels."""
    names = [k.size(c) for c in channels]
    total = max(9.0**rank, k.points(points) / math.prod(channels))
    shape = [k.size(max(9, round(total ** (1 / rank) * k.rng.uniform(0.7, 1.4)))) for _ in range(rank)]
    return shape, names


def _window(k: RandomKernel, shape: Sequence[str]) -> tuple[int, list[str], list[str], dict[str, str]]:
    """The side of a window; extents of an input that it moves over, subscripts in it, ranges of its loops."""
    size, step = k.rng.choice((2, 3, 3, 5, 7)), k.rng.choice((1, 1, 1, 2))
    wide = k.rng.choice((1, 1, 1, 2)) if step == 1 else 1
    extents, subscripts = [], []
    windows = [f"W{a}" for a in range(len(shape))]
    for n, w in zip(shape, windows, strict=True):
        i, offset = loop_of(n), loop_of(w) if wide == 1 else f"{wide} * {loop_of(w)}"
        extents.append(f"{n} + {wide * (size - 1)}" if step == 1 else f"{step} * {n} + {size}")
        subscripts.append(f"{i} + {offset}" if step == 1 else f"{step} * {i} + {offset}")
    return size, extents, subscripts, dict.fromkeys(windows, f"0:{size}")


def _place(first: bool, channel: Sequence[str], image: Sequence[str]) -> list[str]:
    """Channels first, or last."""
    return [*channel, *image] if first else [*image, *channel]


def _convolution(k: RandomKernel, rank: int, depthwise: bool) -> None:
    channels = [k.rng.choice((4, 8, 16, 24, 32, 64))]
    if not depthwise:
        channels.append(k.rng.choice((4, 8, 16, 32)))
    shape, names = _image(k, rank, WORK_SHARE / (3 if depthwise else 1) / 9, channels)
    size, extents, subscripts, window = _window(k, shape)
    first = k.rng.random() < 0.5
    c, f = names[0], names[-1]
    x = k.argument(_place(first, [c], extents))
    read = f"{x}[{', '.join(_place(first, [loop_of(c)], subscripts))}]"
    filters = [str(size)] * rank
    weights = [c] if depthwise else k.rng.choice(([c, f], [f, c]))
    weight = k.argument(_place(first, weights, filters))
    place = _place(first, [*map(loop_of, weights)], [*map(loop_of, window)])
    target = k.element(_place(first, [f], shape))
    ranges = {n: f"0:{n}" for n in _place(first, [f], shape)}
    if not depthwise:
        ranges[c] = f"0:{c}"
    k.body.append(k.map({**ranges, **window}))
    k.write(f"    {target} += {read} * {weight}[{', '.join(place)}]")


def convolution_1d(k: RandomKernel) -> None:
    _convolution(k, 1, depthwise=False)


def convolution_2d(k: RandomKernel) -> None:
    _convolution(k, 2, depthwise=False)


def depthwise(k: RandomKernel) -> None:
    _convolution(k, k.rng.randint(1, 2), depthwise=True)


def pooling(k: RandomKernel) -> None:
    """Sums over windows as loops, or the largest of two by two as one expression."""
    rank = k.rng.randint(1, 3)
    shape, (c,) = _image(k, rank, 1.0, [k.rng.choice((1, 4, 16, 32, 64))])
    first = k.rng.random() < 0.5
    target = k.element(_place(first, [c], shape))
    ranges = {n: f"0:{n}" for n in _place(first, [c], shape)}
    if k.rng.random() < 0.5:
        _, extents, subscripts, window = _window(k, shape)
        x = k.argument(_place(first, [c], extents))
        k.body.append(k.map({**ranges, **window}))
        read = f"{x}[{', '.join(_place(first, [loop_of(c)], subscripts))}]"
        k.write(f"    {target} += {k.expressions.constant()} * {read}")
        return
    x = k.argument(_place(first, [c], [f"2 * {n}" for n in shape]))
    k.body.append(k.map(ranges))
    value = ""
    for corner in range(2**rank):
        subscripts = [f"2 * {loop_of(n)} + {corner >> a & 1}" for a, n in enumerate(shape)]
        read = f"{x}[{', '.join(_place(first, [loop_of(c)], subscripts))}]"
        value = f"max({value}, {read})" if value else read
    k.write(f"    {target} = {value}")


def gates(k: RandomKernel) -> None:
    """Activations of recurrent cells and gated layers: sigmoids and tangents of several arrays."""
    dims = k.loops(2, points=0.5)
    a, b, state = k.element(dims), k.element(dims), k.element(dims)
    lines = [f"g = 1.0 / (1.0 + np.exp(-({a} + {k.element(dims[1:])})))"]
    form = k.rng.choice(("lstm", "gru", "glu", "gelu"))
    if form == "lstm":
        lines += [f"h = np.tanh({b})", f"n = g * {state} + (1.0 - g) * h", f"{state} = n"]
        lines += [f"{k.element(dims)} = g * np.tanh(n)"]
    elif form == "gru":
        lines += [f"h = np.tanh(g * {b})", f"{k.element(dims)} = (1.0 - g) * h + g * {state}"]
    elif form == "glu":
        lines += [f"{k.element(dims)} = {a} * g * {b}"]
    else:
        lines = [f"x = {a} + {k.element(dims[1:])}"]
        lines += [f"{k.element(dims)} = 0.5 * x * (1.0 + np.tanh(0.7978 * (x + 0.0447 * x * x * x)))"]
    k.nest(dims, lines)


def attention(k: RandomKernel) -> None:
    """Scores of queries and keys, or values weighted by them, of several heads."""
    heads, depth = k.size(k.rng.choice((2, 4, 8, 12))), k.size(k.rng.choice((16, 32, 64)))
    length = max(8.0, k.points(WORK_SHARE) / k.sizes[heads] / k.sizes[depth]) ** 0.5
    queries, keys = (k.size(max(4, length * k.rng.uniform(0.5, 2.0))) for _ in range(2))
    inside = k.rng.random() < 0.5  # heads inside of positions

    def of_heads(n: str) -> str:
        return k.element([n, heads, depth] if inside else [heads, n, depth])

    dims = [heads, queries, keys, depth]
    if k.rng.random() < 0.5:
        c = k.expressions.constant()
        left, right = of_heads(queries), of_heads(keys)
        k.nest(dims, [f"{k.element([heads, queries, keys])} += {c} * {left} * {right}"])
    else:
        weight, value = k.element([heads, queries, keys]), of_heads(keys)
        k.nest(dims, [f"{of_heads(queries)} += {weight} * {value}"])


def mixed_precision(k: RandomKernel) -> None:
    """Numbers of few bits, summed up in more: products, sums, dot products of rows."""
    narrow, wide = k.rng.choice((("float32", "float64"), ("int32", "int64"), ("int32", "float64")))
    form = k.rng.choice(("product", "rows", "sum"))
    dims = k.loops({"product": 3}.get(form, 2), points=WORK_SHARE if form == "product" else 1.0)
    cast = f"np.{wide}"
    if form == "product":
        (m, n, r), turned = dims, k.rng.random() < 0.5
        a, b = k.element([m, r], narrow), k.element([n, r] if turned else [r, n], narrow)
        k.nest(dims, [f"{k.element([m, n], wide)} += {cast}({a}) * {cast}({b})"])
        return
    a = k.element(dims, narrow)
    factor = f" * {cast}({k.element(dims, narrow)})" if form == "rows" else ""
    k.nest(dims, [f"{k.element([k.rng.choice(dims)], wide)} += {cast}({a}){factor}"])


def conversion(k: RandomKernel) -> None:
    """Integers to floating-point numbers with a scale, a table or another type beside them."""
    dims = k.loops(k.rng.randint(1, 3))
    cast = f"np.{k.dtype}"
    form = k.rng.choice(("scale", "table", "widen"))
    target = k.element(dims)
    if form == "scale":
        value = f"{k.element(dims[:1])} * ({cast}({k.element(dims, 'int32')}) - {k.element(dims[:1])})"
    elif form == "table":
        table = k.size(k.rng.choice((16, 256)))
        value = f"{k.element(dims[:1])} * {k.argument([table])}[{k.index(dims, table)}[{at(dims)}]]"
    else:
        other = "float64" if k.dtype == "float32" else "float32"
        value = f"{k.expressions.constant()} * {cast}({k.element(dims, other)}) + {k.element(dims)}"
    k.nest(dims, [f"{target} = {value}"])


KINDS: Mapping[str, Kind] = {
    "convolution_1d": convolution_1d,
    "convolution_2d": convolution_2d,
    "depthwise": depthwise,
    "pooling": pooling,
    "gates": gates,
    "attention": attention,
    "mixed_precision": mixed_precision,
    "conversion": conversion,
}
