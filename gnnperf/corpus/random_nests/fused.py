"""Random kernels of several statements that feed one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnnperf.corpus.random_nests.basic import stencil_nest
from gnnperf.corpus.random_nests.kernel import Kind, RandomKernel, at


def _computed(k: RandomKernel, dims: Sequence[str], inputs: Sequence[str], target: str) -> None:
    """A nest that computes `target` from array elements and from one array more."""
    lines, value = k.expressions.combine([*inputs, k.load(dims)])
    k.nest(dims, [*lines, f"{target}[{at(dims)}] = {value}"])


def _spread(axis: int, rank: int) -> str:
    """Subscripts that put the reduced axis back."""
    return f"[{', '.join('None' if a == axis else ':' for a in range(rank))}]"


def fused_maps(k: RandomKernel) -> None:
    """Elementwise statements, each on the result of the one before and sometimes of the first."""
    dims = k.loops(k.rng.randint(1, 3))
    names: list[str] = []
    for step in range(k.rng.randint(2, 4)):
        target = k.argument(dims) if step else k.temporary(dims)
        used = {names[-1], k.rng.choice(names)} if names else set()
        _computed(k, dims, [f"{name}[{at(dims)}]" for name in sorted(used)] or [k.load(dims)], target)
        names.append(target)


def map_stencil(k: RandomKernel) -> None:
    dims = k.loops(k.rng.randint(1, 3), least=12)
    field = k.temporary(dims)
    _computed(k, dims, [k.load(dims)], field)
    stencil_nest(k, dims, field, k.argument(dims), k.rng.randint(1, 2))


def stencil_reduction(k: RandomKernel) -> None:
    """What a stencil leaves, summed up: residuals."""
    dims = k.loops(k.rng.randint(2, 3), least=12)
    source, target = k.argument(dims), k.argument(dims)
    stencil_nest(k, dims, source, target, 1)
    axis = k.rng.randrange(len(dims))
    out = k.argument([n for n in dims if n != dims[axis]])
    value = k.rng.choice((target, f"{target} * {target}", f"np.abs({target} - {source})"))
    k.write(f"{out}[:] = np.{k.rng.choice(('sum', 'max'))}({value}, axis={axis})")


def two_reductions(k: RandomKernel) -> None:
    """Of the same array: side by side, along two axes, or one after the other."""
    dims = k.loops(2)
    a, axis = k.argument(dims), k.rng.randrange(2)
    kept = [dims[1 - axis]]
    form = k.rng.choice(("beside", "crossed", "moments"))
    if form == "beside":
        for operation in k.rng.sample(("sum", "max", "min"), 2):
            k.write(f"{k.argument(kept)}[:] = np.{operation}({a}, axis={axis})")
    elif form == "crossed":
        first, second = (f"{k.element([n])} += {a}[i0, i1] * {k.load(dims)}" for n in dims)
        k.nest(dims, [first, second])
    else:
        mean, out = k.argument(kept), k.argument(kept)
        k.write(
            f"{mean}[:] = np.mean({a}, axis={axis})",
            f"c = {a} - {mean}{_spread(axis, 2)}",
            f"{out}[:] = np.mean(c * c, axis={axis})",
        )


def normalisation(k: RandomKernel) -> None:
    """Rows, columns or fibres to a mean, a length or a largest value of one."""
    rank = k.rng.randint(2, 3)
    dims, axis = k.loops(rank), k.rng.randrange(rank)
    a, out, back = k.argument(dims), k.argument(dims), _spread(axis, rank)
    form = k.rng.choice(("centre", "length", "largest"))
    if form == "centre":
        k.write(f"c = {a} - np.mean({a}, axis={axis}){back}", f"s = np.mean(c * c, axis={axis})")
        result = f"c / np.sqrt(s + 1e-3){back}"
    elif form == "length":
        k.write(f"s = np.sum({a} * {a}, axis={axis})")
        result = f"{a} / np.sqrt(s){back}"
    else:
        k.write(f"s = np.max({a}, axis={axis})")
        result = f"{a} / s{back}"
    if axis == rank - 1 and k.rng.random() < 0.5:
        result = f"{result} * {k.argument(dims[-1:])} + {k.argument(dims[-1:])}"
    k.write(f"{out}[:] = {result}")


def softmax(k: RandomKernel) -> None:
    """Along any axis, perhaps of scaled and masked values; or its gradient."""
    rank = k.rng.randint(2, 3)
    dims, axis = k.loops(rank), k.rng.randrange(rank)
    a, out, back = k.argument(dims), k.argument(dims), _spread(axis, rank)
    form = k.rng.choice(("plain", "masked", "logarithm", "gradient"))
    if form == "gradient":
        given = k.argument(dims)
        k.write(f"s = np.sum({a} * {given}, axis={axis})", f"{out}[:] = {a} * ({given} - s{back})")
        return
    z = a
    if form == "masked":
        k.write(f"z = {k.expressions.constant()} * {a} + {k.argument(dims[1:])}")
        z = "z"
    k.write(f"m = np.max({z}, axis={axis})", f"e = np.exp({z} - m{back})", f"s = np.sum(e, axis={axis})")
    k.write(f"{out}[:] = {f'{z} - m{back} - np.log(s){back}' if form == 'logarithm' else f'e / s{back}'}")


KINDS: Mapping[str, Kind] = {
    "fused_maps": fused_maps,
    "map_stencil": map_stencil,
    "stencil_reduction": stencil_reduction,
    "two_reductions": two_reductions,
    "normalisation": normalisation,
    "softmax": softmax,
}
