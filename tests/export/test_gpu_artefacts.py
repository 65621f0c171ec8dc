"""The runtime head and the networks for tunable kernels, exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gnnperf
from gnnperf.devices import load_device
from gnnperf.export import ExportedModel, export_checkpoint, load_exported
from gnnperf.export.runtime_functions import DEVICE, SPANS, WORKLOAD
from gnnperf.frontends.operators import parse_operator
from gnnperf.graph.workload import Workload
from gnnperf.nn import load_checkpoint
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.runtime.columns import KINDS, UNLIMITED_W, on_device
from gnnperf.nn.runtime.model import LEVELS

RELEASED = Path(gnnperf.__file__).parent.parent / "checkpoints"
GPUS = ("l4", "h200", "mi100", "p4", "k20", "v100-sxm2-16gb")
FAMILIES = ("", "matmul", "softmax", "layernorm", "map")
SIZES = st.integers(1, 20_000).map(float)


@pytest.fixture(scope="module")
def head() -> RuntimeHead:
    return load_checkpoint(RELEASED / "gpu-runtime", RuntimeHead)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ExportedModel:
    folder = tmp_path_factory.mktemp("runtime")
    assert export_checkpoint(RELEASED / "gpu-runtime", folder, "torchscript").store is None
    return load_exported(folder / "model.pt")


def call(runtime: ExportedModel, x: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    inputs = (torch.stack([x[name] for name, _ in names], 1) for names in (WORKLOAD, DEVICE))
    names = [spec["name"] for spec in runtime.metadata["functions"]["runtime"]["outputs"]]
    return dict(zip(names, runtime.call("runtime", *inputs), strict=True))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    batch, m, n, k, rows, columns = (draw(SIZES) for _ in range(6))
    kind = draw(st.sampled_from(KINDS))
    return Workload(
        kind, 2 * batch * m * n * k, 4 * m * k, 4 * m * n, batch, m, n, k, draw(st.booleans()), rows, columns,
        draw(st.sampled_from((1.0, 2.0, 3.0))), draw(st.sampled_from(FAMILIES)),
    )  # fmt: skip


@given(st.lists(workloads(), min_size=1, max_size=9), st.sampled_from(GPUS))
@settings(max_examples=40)
def test_runtimes_and_intervals_are_those_of_the_head(
    runtime: ExportedModel, head: RuntimeHead, some: list[Workload], gpu: str
) -> None:
    x = on_device(some, load_device(gpu))
    expected, found = head.predict_columns(x), call(runtime, x)
    for got, wanted in (
        (found["runtime_s"], expected.runtime_s),
        (found["roofline_s"], expected.roofline_s),
        *((found["lower_s"][:, i], expected.bounds_s[level][0]) for i, level in enumerate(LEVELS)),
        *((found["upper_s"][:, i], expected.bounds_s[level][1]) for i, level in enumerate(LEVELS)),
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize("gpu", GPUS)
def test_objections_are_those_of_the_head(runtime: ExportedModel, head: RuntimeHead, gpu: str) -> None:
    workload, device = parse_operator("linear:M=64,N=64,K=64").workload(), load_device(gpu)
    x = on_device([workload], device)
    far = call(runtime, x)["outside"][0].max() > runtime.metadata["farthest_doublings"]
    assert bool(far) == (head.objection(workload, device) is not None)


def test_an_unknown_power_limit_is_never_outside(runtime: ExportedModel) -> None:
    x = on_device([parse_operator("relu:B=64,H=64").workload()], load_device("l4"))
    outside = call(runtime, {**x, "power": torch.full_like(x["power"], UNLIMITED_W)})["outside"]
    assert outside[0, SPANS.index("power")] == 0


def test_the_metadata_has_the_gpus_of_the_catalog(runtime: ExportedModel) -> None:
    x = on_device([parse_operator("relu:B=64,H=64").workload()], load_device("l4"))
    columns = runtime.metadata["devices"]["l4"]["columns"]
    assert columns == {name: float(x[name][0]) for name, _ in DEVICE}
    assert "epyc-zen5-2vcpu" not in runtime.metadata["devices"]
    assert runtime.metadata["corpus"]["sha256"]


def test_networks_for_tunable_kernels(tmp_path: Path) -> None:
    export_checkpoint(RELEASED / "tunable-kernels", tmp_path, "torchscript")
    model = load_exported(tmp_path / "model.pt")
    networks = load_checkpoint(RELEASED / "tunable-kernels", DemandBundle).networks
    assert set(model.metadata["functions"]) == {
        f"{k}_{i}" for k, ds in networks.items() for i in range(len(ds))
    }
    chance = torch.Generator().manual_seed(0)
    for kernel, demands in networks.items():
        for i, demand in enumerate(demands):
            specs = model.metadata["functions"][f"{kernel}_{i}"]["inputs"]
            assert all(len(spec["columns"]) == spec["shape"][1] for spec in specs)
            for count in (1, 7):
                inputs = [torch.randn(count, spec["shape"][1], generator=chance) for spec in specs]
                with torch.inference_mode():
                    expected = demand.net(*inputs)
                assert np.abs(model.call(f"{kernel}_{i}", *inputs)[0] - expected).max() < 1e-5
