from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from gnnperf.devices import DeviceSpec, find_device, list_devices, load_device, read_devices
from gnnperf.devices.catalog import _CATALOG
from gnnperf.errors import InputError

GPUS = {name: spec for name, spec in list_devices().items() if spec.kind == "gpu"}
DUAL_ISSUE = {"mi300x", "w7800"}  # their peaks count two instructions a cycle


def test_there_are_at_least_35_gpus() -> None:
    assert len(GPUS) >= 35


@pytest.mark.parametrize("name", GPUS)
def test_every_number_of_a_gpu_has_a_unit_and_a_source(name: str) -> None:
    values = yaml.safe_load((_CATALOG / f"{name}.yaml").read_text())
    texts = {"kind", "name", "vendor", "aliases", "arch", "isa", "memory", "source"}
    numbers = {field: value for field, value in values.items() if field not in texts}
    assert len(numbers) >= 12
    for field, value in numbers.items():
        assert {"value", "unit", "source"} <= value.keys() <= {"value", "unit", "source", "doubtful"}, field


@pytest.mark.parametrize("name", GPUS)
def test_peaks_follow_from_lanes_and_clock(name: str) -> None:
    spec = GPUS[name]
    assert spec.boost_mhz and spec.fp32_lanes_per_core and spec.peak_gflops_fp32
    issues = 2 if name in DUAL_ISSUE else 1
    peak = 2 * issues * spec.cores * spec.fp32_lanes_per_core * spec.boost_mhz / 1000
    assert spec.peak_gflops_fp32 == pytest.approx(peak, rel=0.02)


DTYPES = ("fp64", "tf32", "fp16", "bf16", "fp8", "int8")


@pytest.mark.parametrize("name", [name for name, spec in GPUS.items() if spec.vendor == "NVIDIA"])
def test_matrix_units_do_a_power_of_two_a_cycle(name: str) -> None:
    spec = GPUS[name]
    for dtype in DTYPES:
        peak = getattr(spec, f"peak_gflops_{dtype}_matrix")
        if peak is not None and spec.boost_mhz:
            doublings = math.log2(1000 * peak / spec.cores / spec.boost_mhz)
            assert doublings == pytest.approx(round(doublings), abs=0.2), (dtype, peak)
            assert peak >= 0.99 * (spec.peak_gflops_fp64 or 0.0)


def test_products_take_matrix_units_where_there_are_such() -> None:
    a100, p100, t4 = (GPUS[name] for name in ("a100-pcie-40gb", "p100-pcie-16gb", "t4"))
    assert [a100.product_gflops(d) for d in DTYPES] == [19500, 156000, 312000, 312000, None, 624000]
    assert (p100.product_gflops("fp16"), p100.product_gflops("tf32")) == (18700, None)
    assert GPUS["p4"].product_gflops("fp16") == GPUS["p4"].peak_gflops_fp32  # libraries sum in fp32
    assert (t4.product_gflops("bf16"), t4.product_gflops("int8")) == (None, 130000)
    assert all(spec.product_gflops("fp32") and spec.product_gflops("fp16") for spec in GPUS.values()
               if spec.arch in ("volta", "turing", "ampere", "ada", "hopper", "blackwell"))  # fmt: skip


def test_names_and_aliases() -> None:
    for name in ("l4", "L4", "NVIDIA L4", "NVIDIA_L4"):
        assert load_device(name) == GPUS["l4"]
    assert load_device("Tesla P100-PCIE-16GB") == GPUS["p100-pcie-16gb"]
    assert GPUS["l4"].fingerprint == "gpu/ada/sm_89"
    assert GPUS["l4"].threads == 58 * 1536
    assert GPUS["l4"].l2_bytes == 48 << 20
    assert GPUS["mi250x"].provenance["board_power_w"].doubtful is not None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MI250", "mi250"),
        ("H100 SXM5", "h100-sxm"),
        ("H100-SXM5-80GB", "h100-sxm"),
        ("rtx4090", "rtx-4090"),
        ("3090 Ti", "rtx-3090-ti"),
        ("2080Ti", "rtx-2080-ti"),
        ("A100-SXM-80GB", "a100-sxm4-80gb"),
        ("V100 16GB SXM2", "v100-sxm2-16gb"),
        ("6000 Ada", "rtx-6000-ada"),
        ("MI300X OAM", "mi300x"),
    ],
)
def test_names_as_people_write_them(name: str, meant: str) -> None:
    assert load_device(name) == find_device(name, {}) == GPUS[meant]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("A100-80GB", "may be any of a100-pcie-80gb, a100-sxm4-80gb; give one of them"),
        ("A100 SXM4", "may be any of a100-sxm4-40gb, a100-sxm4-80gb; give one of them"),
        ("MI300", "no device 'MI300'; give one of mi100, mi250, mi300x"),
        ("RTX 6000", "no device 'RTX 6000'; give one of rtx-6000-ada"),  # there is an older one of that name
        ("gpu", "no device 'gpu'; give one of host, "),
    ],
)
def test_names_that_leave_open_which_device_is_meant(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_device(name)
    assert message in str(caught.value)


def test_a_name_longer_than_those_of_files_is_of_no_device() -> None:
    assert find_device("x" * 10_000, {}) is None


def test_names_are_unique() -> None:
    for key, spec in GPUS.items():
        for name in (key, spec.name, *spec.aliases):
            assert find_device(name, {}) == spec


def _gpu(**changes: Any) -> dict[str, Any]:
    values = {"kind": "gpu", "name": "Mine", "arch": "ada", "isa": "sm_89", "cores": 10,
              "threads_per_core": 1536, "source": "me"}  # fmt: skip
    return {**values, **changes}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"value": 1, "unit": "MHz"}, "expected a unit out of GB/s, TB/s, got 'MHz'"),
        ({"unit": "GB/s"}, "expected {value, unit, source, doubtful}, got unit"),
        ({"value": 1, "of": 2}, "expected {value, unit, source, doubtful}, got value, of"),
        ({"value": 1, "source": 3}, "expected a text for source, got 3"),
        ({"value": 1, "unit": {"a": 1}}, "expected a unit out of GB/s, TB/s, got {'a': 1}"),
        ({"value": "fast", "unit": "TB/s"}, "expected a positive number, got 'fast'"),
    ],
)
def test_quantities_are_checked(value: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        DeviceSpec.from_dict(_gpu(bandwidth_gbps=value), "here")
    assert str(caught.value) == f"here: bandwidth_gbps: {message}"


def test_units_are_converted() -> None:
    spec = DeviceSpec.from_dict(_gpu(bandwidth_gbps={"value": 1.5, "unit": "TB/s"}, boost_mhz=1000), "here")
    assert (spec.bandwidth_gbps, spec.boost_mhz, spec.threads) == (1500.0, 1000.0, 15360)


def test_files_of_several_devices(tmp_path: Path) -> None:
    path = tmp_path / "devices.yaml"
    alone = tmp_path / "alone.yaml"
    alone.write_text(yaml.safe_dump(_gpu()))
    described = {k: v for k, v in _gpu().items() if k != "name"}
    path.write_text(yaml.safe_dump({"GPU of ours": described, "Tesla T4": "t4", "other": "alone.yaml"}))
    devices = read_devices(path)
    assert list(devices) == ["GPU of ours", "Tesla T4", "other"]
    assert devices["GPU of ours"].name == "GPU of ours"
    assert devices["Tesla T4"] == GPUS["t4"]
    assert find_device("gpu_of_ours", devices) == devices["GPU of ours"]
    assert find_device("NVIDIA L4", devices) == GPUS["l4"]
    assert find_device("abacus", devices) is None
    path.write_text("[t4, L4]")
    assert list(read_devices(path).values()) == [GPUS["t4"], GPUS["l4"]]
    assert list(read_devices(alone)) == ["Mine"]
    for wrong in ("[]", "3", "[1, 2]"):
        path.write_text(wrong)
        with pytest.raises(InputError, match="expected a mapping of device names to descriptions"):
            read_devices(path)
    path.write_text("a: 3")
    with pytest.raises(InputError, match="a: expected a mapping of device fields, got int"):
        read_devices(path)
