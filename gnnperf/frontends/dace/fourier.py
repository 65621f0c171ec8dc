"""Fourier transforms in stages that become nests. DaCe's own expansion adds up n terms for each of n results,
with a sine and a cosine for every term.

Stockham's decimation in frequency (Cochran et al., "What is the fast Fourier transform?", Proc. IEEE, 1967):
each stage is many small transforms of one length, whose results are turned by an angle; what comes out of the
last is in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import dace
from dace import library
from dace.libraries.fft.nodes import FFT, IFFT
from dace.transformation import ExpandTransformation
from sympy import factorint

STAGES = "stages"
"""The name of the implementation."""
LARGEST_RADIX = 8
LARGEST_PRIME = 31
"""A result of a stage is one expression with as many terms, or, of larger primes, a sum in a loop."""


def radices(n: int) -> list[int]:
    """Factors of n, the lengths of its stages: at most `LARGEST_RADIX`, or prime."""
    primes = [prime for prime, power in factorint(n).items() for _ in range(power)]
    found: list[int] = []
    for prime in sorted(primes, reverse=True):
        fits = [at for at, radix in enumerate(found) if radix * prime <= LARGEST_RADIX]
        if fits:
            found[fits[0]] *= prime
        else:
            found.append(prime)
    return found or [1]


@library.register_expansion(FFT, STAGES)
class ForwardStages(ExpandTransformation):  # type: ignore[misc]
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: Any) -> Any:
        return _stages(node, state, sdfg, -1)


@library.register_expansion(IFFT, STAGES)
class InverseStages(ExpandTransformation):  # type: ignore[misc]
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: Any) -> Any:
        return _stages(node, state, sdfg, 1)


def _stages(node: Any, state: Any, parent: Any, sign: int) -> Any:
    """A nested SDFG from `_inp` (..., n) to `_out` (..., n). Raises NotImplementedError, as expansions do."""
    # As a fraction DaCe's own expansion, which may follow, would divide integers: an inverse of zeros.
    node.factor = factor = float(node.factor)
    (source,), (target,) = (
        [parent.arrays[e.data.data] for e in edges] for edges in (state.in_edges(node), state.out_edges(node))
    )
    if isinstance(source, dace.data.View) or isinstance(target, dace.data.View):
        # DaCe's inlining of several states forgets what a view looks at.
        raise NotImplementedError("Fourier transforms of whole arrays alone, not of their parts")
    *around, n = map(int, source.shape)
    factors = radices(n)
    sdfg = dace.SDFG("fourier")
    sdfg.add_array("_inp", source.shape, source.dtype, strides=source.strides)
    sdfg.add_array("_out", target.shape, target.dtype, strides=target.strides)
    stages = _Stages(sdfg, target.dtype, sign, around)
    buffers = [sdfg.add_temp_transient([*around, n], target.dtype)[0] for _ in factors[1:3]]
    left, done, read = n, 1, "_inp"
    for number, radix in enumerate(factors):
        left //= radix
        last = number == len(factors) - 1
        write = "_out" if last else buffers[number % 2]
        stages.add(read, write, radix, left, done, factor if last else 1.0)
        done, read = done * radix, write
    return sdfg


class _Stages:
    """Adds the stages of transforms to an SDFG, one after another. around: how many there are along other
    axes."""

    def __init__(self, sdfg: Any, dtype: Any, sign: int, around: Sequence[int]) -> None:
        self.sdfg, self.dtype, self.sign = sdfg, dtype, sign
        self.around = {f"o{d}": f"0:{size}" for d, size in enumerate(around)}

    def add(self, read: str, write: str, radix: int, left: int, done: int, factor: float) -> None:
        """write[q + done (k + radix p)] = factor turn(p k / (radix left)) times the sum over j of
        turn(j k / radix) read[q + done (p + left j)], where turn(a) is exp(sign 2 pi i a).

        p is a + inner b: tables for a and for b, and a product of both, in place of a sine for each p and k.
        """
        inner = next(d for d in range(math.isqrt(left), 0, -1) if left % d == 0)
        roots = self._table((radix, radix), "(a * b) % {period}", radix, factor)
        points = {
            **self.around,
            "b": f"0:{left // inner}",
            "a": f"0:{inner}",
            "k": f"0:{radix}",
            "q": f"0:{done}",
        }
        is_long = radix > LARGEST_PRIME
        terms = ["j"] if is_long else [*range(radix)]
        reads = {f"__root{j}": f"{roots}[{j}, k]" for j in terms}
        first = f"q + {done} * (a + {inner} * b)"
        where = "".join(f"{o}, " for o in self.around)
        reads |= {f"__x{j}": f"{read}[{where}{first} + {done * left} * {j}]" for j in terms}
        value = " + ".join(f"__x{j} * __root{j}" for j in terms)
        if left > 1:
            fine = self._table((inner, radix), "a * b", radix * left)
            coarse = self._table((left // inner, radix), "a * b", radix * left // inner)
            reads |= {"__fine": f"{fine}[a, k]", "__coarse": f"{coarse}[b, k]"}
            value = f"({value}) * (__fine * __coarse)"
        result = f"{write}[{where}q + {done} * (k + {radix} * (a + {inner} * b))]"
        if is_long:
            self._map("zeros", points, {}, "0", result)
            self._map("stage", {**points, "j": f"0:{radix}"}, reads, value, result, "lambda x, y: x + y")
        else:
            self._map("stage", points, reads, value, result)

    def _table(self, shape: tuple[int, int], angle: str, period: int, factor: float = 1.0) -> str:
        """The name of a table of factor turn(angle / period), the angle in terms of the indices a and b."""
        name, _ = self.sdfg.add_temp_transient(shape, self.dtype)
        turn = f"{2 * math.pi * self.sign / period!r} * ({angle.format(period=period)})"
        value = f"{factor!r} * math.cos({turn}) + {factor!r}j * math.sin({turn})"
        value = f"dace.{self.dtype.to_string()}({value})"
        self._map("angles", {"a": f"0:{shape[0]}", "b": f"0:{shape[1]}"}, {}, value, f"{name}[a, b]")
        return name

    def _map(
        self,
        name: str,
        ranges: dict[str, str],
        reads: dict[str, str],
        value: str,
        write: str,
        wcr: str | None = None,
    ) -> None:
        nodes = self.sdfg.nodes()
        state = self.sdfg.add_state_after(nodes[-1], name) if nodes else self.sdfg.add_state(name)
        inputs = {key: dace.Memlet(text) for key, text in reads.items()}
        state.add_mapped_tasklet(
            name,
            ranges,
            inputs,
            f"__out = {value}",
            {"__out": dace.Memlet(write, wcr=wcr)},
            external_edges=True,
        )
