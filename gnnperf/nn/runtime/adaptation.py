"""What runs on a GPU say about other kernels there: a Gaussian process over what predictions are off by.

A GPU differs from what is predicted in its floor, bandwidth and peak, which many kernels feel to the share
that they depend on them, and in what kernels of one family, and of like size, have of their own. How much
each of these varies is learned from GPUs that were left out. Far from what was run, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnnperf.nn.runtime.columns import FAMILIES, Columns
from gnnperf.nn.runtime.physics import bytes_of, gain_of, roofline_s

PROPERTIES = ("launch", "memory", "rate")
"""Constants of `Physics` that are properties of a device."""
FREEDOM = 4.0
"""Degrees of freedom of Student's t: single runs may lie far off without moving the rest."""
ROUNDS = 8
"""Of reweighting runs by how far off they are."""
STEPS, LEARNING_RATE = 200, 0.05
ROWS = 40
"""Of every family on every GPU, rows that likeness is learned from."""


@dataclass(frozen=True)
class Traits:
    """Of n kernels on one GPU, what likeness is seen by.

    shares: f64[n, 3], by how much ln(seconds) grows with ln of each of PROPERTIES. place: f64[n, s], ln of
    sizes. family: i64[n], index into FAMILIES, or -1. dtype: f64[n], equal for kernels of equal dtypes.
    """

    shares: Tensor
    place: Tensor
    family: Tensor
    dtype: Tensor

    def take(self, chosen: Tensor) -> Traits:
        return Traits(self.shares[chosen], self.place[chosen], self.family[chosen], self.dtype[chosen])


def traits_of(x: Columns, shares: Tensor) -> Traits:
    """Of columns of workloads and device."""
    sizes = [roofline_s(x), *(x[name] for name in ("batch", "m", "n", "k", "columns"))]
    sizes.append(x["read_bytes"] / x["written_bytes"])
    place = torch.stack([torch.log(size) for size in sizes], dim=1)
    return Traits(shares, place, x["family"].long(), torch.log2(gain_of(x)) + 100 * bytes_of(x))


@dataclass(frozen=True)
class Likeness:
    """Standard deviations between GPUs, in ln(seconds), learned by `fit_likeness`.

    properties: of every one of PROPERTIES. family: by family, of what all its kernels are off by; size: of
    what those of like size are, where like means within about `reach` of ln; single: of one kernel alone.
    """

    properties: tuple[float, ...]
    family: Mapping[str, float]
    size: Mapping[str, float]
    single: Mapping[str, float]
    reach: float

    @staticmethod
    def of(values: Mapping[str, Any]) -> Likeness:
        """The inverse of `dataclasses.asdict`, of a document."""
        return Likeness(**{**values, "properties": tuple(values["properties"])})

    def posterior(self, runs: Traits, off: Tensor, asked: Traits) -> tuple[Tensor, Tensor]:
        """What predictions are off by, in ln(seconds), f64[n] of `asked`, and the share of their standard
        deviation that is left; `off`, f64[r]: what they were off by for the runs."""
        return _Kernel.of(self).posterior(runs, off, asked)


@dataclass(frozen=True)
class _Kernel:
    """`Likeness` as tensors; family, size, single: f64[families + 1], the last of any other family."""

    properties: Tensor
    family: Tensor
    size: Tensor
    single: Tensor
    reach: Tensor

    @staticmethod
    def of(known: Likeness) -> _Kernel:
        def by_family(values: Mapping[str, float]) -> Tensor:
            worst = max(values.values())
            return torch.tensor([values.get(name, worst) for name in (*FAMILIES, "")], dtype=torch.float64)

        properties = torch.tensor(known.properties, dtype=torch.float64)
        reach = torch.tensor(known.reach, dtype=torch.float64)
        family, size, single = map(by_family, (known.family, known.size, known.single))
        return _Kernel(properties, family, size, single, reach)

    @staticmethod
    def from_logarithms(numbers: Tensor) -> _Kernel:
        """Of f64[PROPERTIES + 3 * (families + 1) + 1], in the order of the fields."""
        values, count, others = torch.exp(numbers), len(PROPERTIES), len(FAMILIES) + 1
        family, size, single = values[count:-1].reshape(3, others)
        return _Kernel(values[:count], family, size, single, values[-1])

    def covariance(self, a: Traits, b: Traits) -> Tensor:
        """f64[n, m], without what single kernels have of their own."""
        launch, memory, rate = (
            (a.shares[:, i] * self.properties[i] ** 2)[:, None] * b.shares[:, i]
            for i in range(len(PROPERTIES))
        )
        alike = a.dtype[:, None] == b.dtype  # other dtypes have peaks of their own
        shared = launch + memory + alike * rate
        same = alike & (a.family[:, None] == b.family)
        near = torch.exp(-(torch.cdist(a.place, b.place) ** 2) / (2 * self.reach**2))
        return shared + same * (
            self.family[a.family][:, None] ** 2 + self.size[a.family][:, None] ** 2 * near
        )

    def variance(self, a: Traits) -> Tensor:
        """f64[n]: the diagonal of `covariance`."""
        own = self.family[a.family] ** 2 + self.size[a.family] ** 2
        return (a.shares**2 * self.properties**2).sum(1) + own

    def posterior(self, runs: Traits, off: Tensor, asked: Traits) -> tuple[Tensor, Tensor]:
        prior, single = self.covariance(runs, runs), self.single[runs.family] ** 2
        noise = single
        for _ in range(ROUNDS):
            factor = torch.linalg.cholesky(prior + torch.diag(noise))
            weights = torch.cholesky_solve(off[:, None], factor)
            left = off - (prior @ weights)[:, 0]
            noise = single * (FREEDOM + left**2 / single) / (FREEDOM + 1)
        between = self.covariance(asked, runs)
        known = torch.linalg.solve_triangular(factor, between.T, upper=False).square().sum(0)
        before = self.variance(asked) + self.single[asked.family] ** 2
        return (between @ weights)[:, 0], torch.sqrt((before - known) / before)

    def surprise(self, runs: Traits, off: Tensor) -> Tensor:
        """-ln of the density of `off`, per row."""
        factor = torch.linalg.cholesky(
            self.covariance(runs, runs) + torch.diag(self.single[runs.family] ** 2)
        )
        white = torch.linalg.solve_triangular(factor, off[:, None], upper=False)
        return (0.5 * white.square().sum() + torch.log(factor.diagonal()).sum()) / len(off)


def fit_likeness(gpus: Sequence[tuple[Traits, Tensor]], seed: int = 0) -> Likeness:
    """By maximum likelihood, from what predictions were off by, f64[n] each, on GPUs that were left out."""
    chance = torch.Generator().manual_seed(seed)
    samples = []
    for traits, off in gpus:
        rows = [torch.nonzero(traits.family == code)[:, 0] for code in range(len(FAMILIES))]
        some = torch.cat([r[torch.randperm(len(r), generator=chance)[:ROWS]] for r in rows])
        samples.append((traits.take(some), off[some].clamp(-1.0, 1.0)))
    others = len(FAMILIES) + 1
    first = [0.1] * len(PROPERTIES) + [0.08] * others + [0.1] * others + [0.08] * others + [2.0]
    start = torch.log(torch.tensor(first, dtype=torch.float64))
    numbers = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([numbers], lr=LEARNING_RATE)
    for _ in range(STEPS):
        kernel = _Kernel.from_logarithms(numbers)
        loss = torch.stack([kernel.surprise(*sample) for sample in samples]).mean()
        loss = loss + 0.02 * ((numbers - start) ** 2).mean()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    found = _Kernel.from_logarithms(numbers.detach())
    family, size, single = (
        dict(zip(FAMILIES, values.tolist(), strict=False))
        for values in (found.family, found.size, found.single)
    )
    return Likeness(tuple(found.properties.tolist()), family, size, single, float(found.reach))
