"""What `gnnperf retrieve KERNEL --gpu NAME` and `gnnperf predict` do for tunable kernels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from gnnperf.devices import DeviceSpec, find_device
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import Description, check_gpu, configurations_of, plan
from gnnperf.frontends.gpu_kernels.tables import Candidates, GpuTable
from gnnperf.nn.demand import LEVELS, DemandBundle
from gnnperf.nn.runtime.operator_table import read_csv
from gnnperf.retrieval.configurations import expected_log2_ms, rank_configurations
from gnnperf.retrieval.few_shot import adapted
from gnnperf.retrieval.prediction import KernelPrediction

KERNEL_TUNER_SCHEMA = "1.0.0"


@dataclass(frozen=True)
class Prediction:
    """Of n configurations on a GPU, in milliseconds. interval_ms: by level in percent, (lo, hi).
    fits: false where a block needs more shared memory or threads than it can have."""

    runtime_ms: Float64[np.ndarray, " n"]
    interval_ms: Mapping[str, tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]]
    fits: np.ndarray


@dataclass(frozen=True)
class ConfigurationProposal:
    """Configurations to try first, in this order, with what is expected of them. spaces: names of the
    measured spaces they rest on; none: the kernel was not measured, or no measurements were given."""

    kernel: str
    device: DeviceSpec
    configurations: Sequence[Mapping[str, int]]
    prediction: Prediction
    candidates: int
    spaces: Sequence[str]


def predict_configurations(
    description: Description,
    configurations: Sequence[Mapping[str, int]],
    device: DeviceSpec,
    bundle: DemandBundle,
    sizes: Mapping[str, float] | None = None,
) -> Prediction:
    """Predict runtimes of a tunable kernel. Raises InputError for what the kernel or the device lacks."""
    candidates = _candidates(description, configurations, device, sizes)
    expected = expected_log2_ms(candidates, bundle.demands(description), bundle.tables(description))
    return _prediction(candidates, bundle, expected.corrected)


@dataclass(frozen=True)
class Runs:
    """Configurations, with sizes of the problem, that were run on a GPU, and what they took."""

    configurations: Sequence[Mapping[str, int]]
    log2_ms: Float64[np.ndarray, " r"]


def read_runs(path: Path | None, device: DeviceSpec, devices: Mapping[str, DeviceSpec]) -> Runs:
    """Runs of a kernel on one GPU out of a CSV with the columns device, runtime_ms, and parameters or sizes
    of the kernel; none without a file. Raises InputError when the file is not that."""
    if path is None:
        return Runs([], np.array([]))
    table = read_csv(path)
    if missing := [name for name in ("device", "runtime_ms") if name not in table.column_names]:
        raise InputError(f"{path}: expected a column {missing[0]}, got {', '.join(table.column_names)}")
    runs = [run for run in table.to_pylist() if find_device(str(run.pop("device")), devices) == device]
    measured = [run.pop("runtime_ms") for run in runs]
    if not all(isinstance(ms, int | float) and 0 < ms < math.inf for ms in measured):
        raise InputError(f"{path}: expected runtime_ms above 0 in every row of {device.name}")
    return Runs(runs, np.log2(np.array(measured, dtype=float)))


def predict_from_runs(
    description: Description,
    configurations: Sequence[Mapping[str, int]],
    device: DeviceSpec,
    bundle: DemandBundle,
    runs: Runs,
) -> Prediction:
    """Predict runtimes of a tunable kernel on a GPU that ran some of its configurations; without runs, as
    `predict_configurations`.

    Runs of another problem size count as what the network expects of them with the first configuration's.
    Raises InputError for what the kernel or the device lacks.
    """
    if not runs.configurations:
        return predict_configurations(description, configurations, device, bundle)
    here = {size: configurations[0][size] for size in description.sizes if size in configurations[0]}
    at_size = [{**{k: v for k, v in run.items() if k in description.parameters}, **here}
               for run in runs.configurations]  # fmt: skip
    demands = bundle.demands(description)
    as_run, scaled = (
        expected_log2_ms(_candidates(description, found, device, None), demands, ()).network
        for found in (runs.configurations, at_size)
    )
    candidates = _candidates(description, [*configurations, *at_size], device, None)
    ranking = rank_configurations(candidates, demands, bundle.tables(description))
    count = len(configurations)
    seen = np.arange(count, len(candidates))
    middle = adapted(ranking, seen, runs.log2_ms + scaled - as_run)[:count]
    widths = {level: bundle.half_width(description, level, len(seen)) for level in LEVELS}
    return _around(middle, widths, candidates.physics["fits"][:count] > 0)


def predict_configuration(
    description: Description,
    configuration: Mapping[str, int],
    device: DeviceSpec,
    bundle: DemandBundle,
    runs: Runs,
) -> KernelPrediction:
    """What `predict_from_runs` says of one configuration."""
    found = predict_from_runs(description, [configuration], device, bundle, runs)
    if not found.fits[0]:
        why = f"a block needs more shared memory or threads than one can have on {device.name}"
        return KernelPrediction(device, objection=why)
    physics = Candidates(description, device, [configuration]).physics
    return KernelPrediction(
        device,
        1e-3 * float(found.runtime_ms[0]),
        float(physics["roofline_s"][0]),
        {
            int(level) / 100: (1e-3 * float(lo[0]), 1e-3 * float(hi[0]))
            for level, (lo, hi) in found.interval_ms.items()
        },
    )


def propose(
    description: Description,
    device: DeviceSpec,
    bundle: DemandBundle,
    k: int,
    measured: Sequence[GpuTable] = (),
    sizes: Mapping[str, float] | None = None,
) -> ConfigurationProposal:
    """The k configurations to try first.

    Args:
        description: of the kernel.
        device: a GPU, which nothing needs to have run on.
        bundle: released networks.
        k: how many, at least one.
        measured: configurations measured on GPUs; those of this kernel are used.
            They say which configurations are good, never that one is allowed: the description's parameters
            and constraints do. Configurations that are one program are proposed once, and those of which a
            block is too large for the GPU never, so that there may be fewer than k.
        sizes: problem size, where it is not the description's. What was measured counts for the order of
            the configurations whatever its size.

    Raises:
        InputError: no GPU, unknown sizes, or no configuration is allowed or fits.
    """
    check_gpu(device)
    _check_sizes(description, sizes or {})
    mine = [table for table in measured if table.kernel == description.name]
    found = configurations_of(description, sizes)
    parameters = description.parameters
    seen = {tuple(c.values()) for c in found}
    allowed = [set(values) for values in parameters.values()]
    for table in mine:  # what was fastest elsewhere may not be among those drawn
        order = np.argsort(-table.efficiency, kind="stable")[: table.ok.sum()]
        keys = [table.keys[i] for i in order[:1000] if table.keys[i] not in seen]
        within = [all(value in some for value, some in zip(key, allowed, strict=True)) for key in keys]
        fast = [dict(zip(parameters, key, strict=True)) for key in itertools.compress(keys, within)]
        if fast:
            valid = plan(description, fast, sizes).valid
            found += itertools.compress(fast, valid)
            seen.update(tuple(c.values()) for c in fast)
    alike = _candidates(description, found, device, sizes)
    _, different, program = np.unique(alike.programs, return_index=True, return_inverse=True)
    candidates = _candidates(description, [found[i] for i in different], device, sizes)
    fits = candidates.physics["fits"] > 0
    if not fits.any():
        raise InputError(
            f"{description.name}: no configuration fits on {device.name}: a block needs more shared memory "
            "or threads than one can have; give smaller values"
        )
    if not fits.all():
        different = different[fits]
        candidates = _candidates(description, [found[i] for i in different], device, sizes)
    ranking = rank_configurations(candidates, bundle.demands(description), mine)
    first = ranking.first(k)
    chosen = [found[i] for i in different[first]]
    prediction = _prediction(_candidates(description, chosen, device, sizes), bundle, ranking.log2_ms[first])
    spaces = sorted({table.space for table in mine})
    return ConfigurationProposal(
        description.name, device, chosen, prediction, int(fits[program].sum()), spaces
    )


def kernel_tuner_cache(
    proposal: ConfigurationProposal, description: Description, sizes: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The proposal as a document that Kernel Tuner reads as a cache file (its schema 1.0.0) in which nothing
    is measured yet: predictions are no measurements. `start` lists the configurations in the order of
    `tune_params_keys`, each of which can be a strategy's x0; `tune_params` has the values that occur."""
    keys = list(description.parameters)
    values = {key: sorted({c[key] for c in proposal.configurations}) for key in keys}
    return {
        "schema_version": KERNEL_TUNER_SCHEMA,
        "device_name": proposal.device.name,
        "kernel_name": proposal.kernel,
        "problem_size": [int(v) for v in {**description.sizes, **(sizes or {})}.values()],
        "tune_params_keys": keys,
        "tune_params": values,
        "objective": "time",
        "cache": {},
        "start": [[c[key] for key in keys] for c in proposal.configurations],
        "predicted_ms": proposal.prediction.runtime_ms.tolist(),
    }


def _candidates(
    description: Description,
    configurations: Sequence[Mapping[str, int]],
    device: DeviceSpec,
    sizes: Mapping[str, float] | None,
) -> Candidates:
    given = dict(sizes or {})
    _check_sizes(description, given)
    return Candidates(description, device, [{**c, **given} for c in configurations])  # type: ignore[dict-item]


def _check_sizes(description: Description, sizes: Mapping[str, float]) -> None:
    if wrong := sorted(set(sizes) - set(description.sizes)):
        known = ", ".join(description.sizes) or "none"
        raise InputError(f"{description.name}: unknown size {wrong[0]!r}; known: {known}")


def _prediction(
    candidates: Candidates, bundle: DemandBundle, middle: Float64[np.ndarray, " n"]
) -> Prediction:
    """middle: log2 of milliseconds."""
    if bundle.demands(candidates.description)[0].parameters is None:
        # Of a kernel that nobody measured, networks know no bounds.
        middle = np.maximum(middle, np.log2(1e3 * candidates.physics["roofline_s"]))
    widths = {level: bundle.half_width(candidates.description, level) for level in LEVELS}
    return _around(middle, widths, candidates.physics["fits"] > 0)


def _around(middle: Float64[np.ndarray, " n"], widths: Mapping[str, float], fits: np.ndarray) -> Prediction:
    """middle, widths: in log2 of milliseconds."""
    spans = {level: (np.exp2(middle - width), np.exp2(middle + width)) for level, width in widths.items()}
    return Prediction(np.exp2(middle), spans, fits)
