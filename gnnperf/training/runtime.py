"""Fitting the constants of the runtime model by robust regression of ln(time)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gnnperf.nn.runtime.columns import LIBRARIES, Rows
from gnnperf.nn.runtime.contraction import VARIANTS, ContractionTime
from gnnperf.nn.runtime.model import PARTS, RuntimeModel, part_of

LAUNCH_BOUND_S = 1e-4
"""Runtimes below are mostly the start of the kernel, which a GPU's host decides: they count for less."""

FAST_HOST = 0.25
"""Quantile of the launch times of the GPUs fitted to that is expected of another: by how much slow hosts are
slower is their own affair."""
LAUNCHES, RARE = 100, 0.01
"""Launches that must be known of a library to say which kernels it runs, and the share of them below which it
does not run one."""
SHARED = ("memory", "gddr", "first_hbm")
"""Constants of elementwise kernels that those that go over rows take from them."""


@dataclass(frozen=True)
class RuntimeFitSettings:
    """rows_per_group: measurements of one family on one device that a fit sees. steps: of Adam, for products
    and, cheaper, for the rest."""

    rows_per_group: int = 300
    steps: int = 300
    light_steps: int = 600
    learning_rate: float = 0.03
    device_penalty: float = 0.03


DEFAULT = RuntimeFitSettings()


def fit_model(rows: Rows, seed: int, config: RuntimeFitSettings = DEFAULT) -> RuntimeModel:
    """One model of all rows; `seed` chooses which rows it sees.

    Kinds without rows keep the constants that physics puts there.
    """
    model = RuntimeModel()
    part = part_of(rows.columns)
    weight = 0.05 + rows.seconds / (rows.seconds + LAUNCH_BOUND_S)
    memory: dict[int, float] = {}
    _see_launches(model, rows)
    for index, name in enumerate(PARTS):
        here = torch.nonzero(part == index)[:, 0]
        if len(here):
            sample = rows.take(here[_sample(rows.take(here), weight[here], seed, config.rows_per_group)])
            found = _fit_part(model, name, sample, memory, config)
            if name == "map":
                memory = found
                for other in ("softmax", "rows"):
                    for constant in SHARED:
                        value = model.physics_of("map").constants[constant].detach().clone()
                        model.physics_of(other).constants[constant] = nn.Parameter(value)
    return model.eval()


def _see_launches(model: RuntimeModel, rows: Rows) -> None:
    """Tell a model which kernels libraries run for products, as far as their launches are known."""
    if "variant" not in rows.columns:
        return
    physics = model.physics_of("contraction")
    assert isinstance(physics, ContractionTime)
    x = rows.columns
    for library, family in product(range(len(LIBRARIES)), range(2)):
        here = (x["library"] == library) & (x["family"] == family) & (x["variant"] >= 0)
        if int(here.sum()) >= LAUNCHES:
            count = torch.bincount(x["variant"][here].long(), minlength=len(VARIANTS))
            physics.runs[library, family] = count >= RARE * count.sum()


def _unlike(constant: str, own: Tensor) -> Tensor:
    """What it costs that devices differ from the constant of all: that of launches is not their mean but
    FAST_HOST's quantile."""
    if constant != "launch":
        return (own**2).mean()
    share = torch.where(own > 0, FAST_HOST, 1 - FAST_HOST)
    return (share * torch.sqrt(own**2 + 1e-4)).mean()


def _sample(rows: Rows, weight: Tensor, seed: int, count: int) -> Tensor:
    """Positions of up to `count` rows of every (device, family), by weight, without replacement."""
    random = np.random.default_rng(seed)
    group = rows.device * 16 + rows.columns["family"].long()
    chosen: list[NDArray[np.int64]] = []
    for code in torch.unique(group):
        members = torch.nonzero(group == code)[:, 0].numpy()
        share = weight[members].numpy()
        size = min(count, len(members))
        chosen.append(random.choice(members, size, replace=False, p=share / share.sum()))
    return torch.from_numpy(np.concatenate(chosen))


def _fit_part(
    model: RuntimeModel, name: str, rows: Rows, memory: Mapping[int, float], config: RuntimeFitSettings
) -> dict[int, float]:
    """Fit one part in place; returns what the memory of every device does better than predicted, in ln."""
    physics = model.physics_of(name)
    devices, device = torch.unique(rows.device, return_inverse=True)
    group = device * 16 + rows.columns["family"].long()
    # Every (device, family) weighs the same, whatever the number of its rows.
    weight = 0.05 + rows.seconds / (rows.seconds + LAUNCH_BOUND_S)
    weight = (
        weight / torch.zeros(int(group.max()) + 1, dtype=torch.float64).index_add(0, group, weight)[group]
    )
    weight = weight / weight.sum()
    own = {
        constant: torch.zeros(len(devices), dtype=torch.float64, requires_grad=True)
        for constant in physics.varying
    }
    known = {}
    held: tuple[str, ...] = ()
    if name in ("softmax", "rows"):  # their memory is the one of the elementwise kernels
        held = SHARED
        known["memory"] = torch.tensor([memory.get(int(d), 0.0) for d in devices], dtype=torch.float64)[
            device
        ]
    constants = [value for key, value in physics.constants.items() if key not in held]
    optimiser = torch.optim.Adam([*constants, *own.values()])
    target = torch.log(rows.seconds)
    steps = config.steps if name == "contraction" else config.light_steps
    for step in range(steps):
        for parameters in optimiser.param_groups:
            parameters["lr"] = config.learning_rate * (1 - step / steps) + 1e-4
        offsets = {**known, **{constant: values[device] for constant, values in own.items()}}
        error = model.part(name, rows.columns, offsets) - target
        loss = (weight * torch.sqrt(error**2 + 0.0025)).sum()
        loss = loss + config.device_penalty * sum(_unlike(constant, v) for constant, v in own.items())
        loss = loss + 0.1 * physics.departure()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    found = own.get("memory")
    found = None if found is None else found.detach()
    return {} if found is None else {int(d): v for d, v in zip(devices, found.tolist(), strict=True)}
