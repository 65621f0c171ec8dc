"""Random kernels that go through index arrays: meshes, scatters, sparse matrices, histograms."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.corpus.random_nests.kernel import Kind, RandomKernel

WIDTHS = (4, 8, 16, 32, 48)


def mesh(k: RandomKernel) -> None:
    """What faces, triangles or tetrahedra make of the cells that they touch."""
    (n,) = k.loops(1, points=0.4)
    cells = k.size(k.sizes[n] * k.rng.choice((0.2, 0.5, 1.0)) + 64)
    u, near = k.argument([cells]), k.rng.random() < 0.6
    corners = []
    for _ in range(k.rng.randint(2, 4)):
        if near:
            content = (
                f"np.clip(np.arange({n}) * {cells} // {n} + rng.integers(-200, 201, {n}), 0, {cells} - 1)"
            )
            corners.append(f"{u}[{k.give([n], content)}[i0]]")
        else:
            corners.append(f"{u}[{k.index([n], cells)}[i0]]")
    value = f"{corners[0]} - {corners[1]}"
    for corner in corners[2:]:
        value = f"{value} + {k.expressions.constant()} * {corner}"
    k.nest([n], [f"{k.element([n])} = {k.load([n])} * ({value})"])


def scatter(k: RandomKernel) -> None:
    """Elements or rows added where an index array says."""
    form = k.rng.choice(("element", "row", "two"))
    wide = k.rng.choice(WIDTHS)
    (n,) = k.loops(1, points=1 / wide if form == "row" else 0.3)
    m = k.size(k.sizes[n] * k.rng.choice((0.05, 0.3, 1.0)) + 64)
    row = [k.size(wide)] if form == "row" else []
    lines, value = k.expressions.combine([k.element([n, *row]), k.element([n])], plain=True)
    tail = ", i2" if row else ""
    targets = [k.argument([m, *row])]
    adds = [
        f"{t}[{k.index([n], m)}[i0]{tail}] += {value}" for t in (targets * 2 if form == "two" else targets)
    ]
    k.nest([n, *row], [*lines, *adds])


def histogram(k: RandomKernel) -> None:
    """Weights or ones, counted in few bins: one histogram, or one for every row."""
    (n,) = k.loops(1, points=0.3)
    bins = k.size(k.rng.choice((16, 64, 256, 1024)))
    if k.rng.random() < 0.5:
        k.nest([n], [f"{k.argument([bins])}[{k.index([n], bins)}[i0]] += {k.element([n])}"])
        return
    rows = k.size(k.rng.choice((8, 32, 128)))
    k.sizes[n] = max(16, k.sizes[n] // k.sizes[rows])
    code = k.index([rows, n], bins)
    k.write(f"for i2 in dace.map[0:{rows}]:", f"    for i0 in dace.map[0:{n}]:")
    k.write(f"        {k.argument([rows, bins])}[i2, {code}[i2, i0]] += {k.argument([rows, n])}[i2, i0]")


def ell(k: RandomKernel) -> None:
    """Sparse matrices with as many entries in every row, times a vector or a dense matrix."""
    wide = k.rng.choice((1, 1, *WIDTHS))
    entries = k.rng.choice((4, 7, 9, 16, 27))
    n = k.size(max(32, k.points(0.5) / (wide * entries)))
    per_row = k.size(entries)
    m = k.size(k.sizes[n] * k.rng.choice((0.3, 1.0, 2.0)) + 64)
    row = [k.size(wide)] if wide > 1 else []
    shape = [n, per_row] if k.rng.random() < 0.7 else [per_row, n]
    weight, columns = k.element(shape), k.index(shape, m)
    place = f"{columns}[{'i0, i1' if shape[0] == n else 'i1, i0'}]{', i3' if row else ''}"
    k.nest([n, per_row, *row], [f"{k.element([n, *row])} += {weight} * {k.argument([m, *row])}[{place}]"])


def csr(k: RandomKernel) -> None:
    """Sparse matrices with rows of any length, times a vector or a dense matrix, or their sums of rows."""
    form = k.rng.choice(("vector", "dense", "dense", "pattern", "rows"))
    wide = k.rng.choice(WIDTHS) if form in ("dense", "pattern") else 1
    entries = k.size(max(64, k.points() / wide))
    n = k.size(max(32, k.sizes[entries] / k.rng.choice((4, 10, 30))))
    m = k.size(k.sizes[n] * k.rng.choice((0.5, 1.0, 2.0)) + 64)
    uneven = k.rng.choice((1, 1, 2, 3))  # a power law of the lengths of rows
    rows = f"np.sort(({n} * rng.random({entries}) ** {uneven}).astype(np.int64))"
    begin = k.give([f"{n} + 1"], f"np.searchsorted({rows}, np.arange({n} + 1))")
    value = k.argument([entries])
    k.write(f"for i0 in dace.map[0:{n}]:", f"    for j in dace.map[{begin}[i0]:{begin}[i0 + 1]]:")
    if form == "rows":
        k.write(f"        {k.argument([n])}[i0] += {value}[j] * {value}[j]")
        return
    column = f"{k.index([entries], m)}[j]"
    factor = "" if form == "pattern" else f"{value}[j] * "
    if wide == 1:
        k.write(f"        {k.argument([n])}[i0] += {factor}{k.argument([m])}[{column}]")
        return
    d = k.size(wide)
    out, x = k.argument([n, d]), k.argument([m, d])
    k.write(f"        for i3 in dace.map[0:{d}]:", f"            {out}[i0, i3] += {factor}{x}[{column}, i3]")


KINDS: Mapping[str, Kind] = {
    "mesh": mesh,
    "scatter": scatter,
    "histogram": histogram,
    "ell": ell,
    "csr": csr,
}
