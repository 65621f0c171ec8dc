"""Learning demands from tables, and the bundle that they are released in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import gpu_world

from gnnperf.frontends.gpu_kernels import find_description
from gnnperf.frontends.gpu_kernels.tables import GpuTable, load_tables
from gnnperf.nn import load_checkpoint, save_checkpoint
from gnnperf.nn.demand import ANY, DemandBundle, likeness
from gnnperf.training.demand import DemandFitSettings, fit_demand

BRIEF = DemandFitSettings(steps=150, batch=256)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[GpuTable]:
    return load_tables(gpu_world.write(tmp_path_factory.mktemp("data") / "t.parquet", gpu_world.rows()))


def error(predicted: np.ndarray, table: GpuTable) -> float:
    return float(np.median(np.abs(predicted - np.log2(table.runtime_ms))[table.ok]))


def test_a_gpu_that_was_not_measured_is_predicted(tables: Sequence[GpuTable]) -> None:
    gemm = [t for t in tables if t.kernel == "gemm"]
    held_out, train = gemm[0], gemm[1:]
    fitted = fit_demand(train, own=True, settings=BRIEF)
    unlearned = fit_demand(train, own=True, settings=replace(BRIEF, steps=1))
    assert error(fitted.predict(held_out), held_out) < 0.6 * error(unlearned.predict(held_out), held_out)
    again = fit_demand(train, own=True, settings=BRIEF)
    assert np.array_equal(again.predict(held_out), fitted.predict(held_out))


def test_likeness_goes_by_architecture_and_vendor(tables: Sequence[GpuTable]) -> None:
    devices = {t.gpu: t.device for t in tables}
    near = likeness(devices["A4000"], devices["RTX 3090"])
    assert near > likeness(devices["A4000"], devices["A100"])
    assert likeness(devices["A4000"], devices["A100"]) > likeness(
        devices["A4000"], replace(devices["A100"], vendor="AMD")
    )


def test_a_bundle_is_what_was_saved(tables: Sequence[GpuTable], tmp_path: Path) -> None:
    gemm = [t for t in tables if t.kernel == "gemm"]
    own, generic = (fit_demand(gemm, own=o, settings=BRIEF) for o in (True, False))
    widths = {name: {"50": 0.1, "80": 0.2, "95": 0.4} for name in ("gemm", ANY)}
    save_checkpoint(tmp_path / "b", DemandBundle({"gemm": [own], ANY: [generic]}, widths))
    bundle = load_checkpoint(tmp_path / "b", DemandBundle)
    description = find_description("gemm")
    assert np.array_equal(bundle.demands(description)[0].predict(gemm[0]), own.predict(gemm[0]))
    assert bundle.half_width(description) == 0.2
    other = bundle.demands(find_description("hotspot"))[0]
    assert other.parameters is None
    assert np.array_equal(other.predict(gemm[1]), generic.predict(gemm[1]))
    changed = replace(description, parameters={**description.parameters, "NEW": (1,)})
    assert bundle.demands(changed)[0].parameters is None
