"""Reading what Kernel Tuner wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import find_description
from gnnperf.frontends.gpu_kernels.tables import GpuTable, load_tables

KEYS = ["block_size_x", "tile_size"]
CACHE = {
    "schema_version": "1.0.0", "device_name": "NVIDIA RTX A4000", "kernel_name": "cn_pnpoly",
    "problem_size": 20000000, "tune_params_keys": KEYS, "tune_params": {}, "objective": "time",
    "cache": {
        "64,1": {"block_size_x": 64, "tile_size": 1, "time": 3.5, "times": [3.4, 3.6], "GFLOP/s": 1.0},
        "64,2": {"block_size_x": 64, "tile_size": 2, "time": "CompilationFailedConfig"},
    },
}  # fmt: skip


def result(tile: int, invalidity: str, **time: Any) -> dict[str, Any]:
    return {
        "configuration": {"block_size_x": 64, "tile_size": tile}, "times": {"runtimes": []},
        "invalidity": invalidity, "correctness": 1, "objectives": ["time"],
        "measurements": [{"name": "GFLOP/s", "value": 9.0, "unit": ""}, {"name": "time", **time}],
    }  # fmt: skip


T4 = {
    "schema_version": "1.0.0",
    "results": [
        result(1, "correct", value=3.5, unit="ms"),
        result(2, "compile", value=1.0, unit="ms"),
        result(4, "correct", value=0.007, unit="s"),
    ],
}


HOSTILE = [
    ("c.json", "[" * 100_000, "nested deeper than 32 levels"),
    ("c.json", '{"a":' * 40 + "1" + "}" * 40, "nested deeper than 32 levels"),
    ("c.json", "{}", "KeyError"),
    ("c.json", json.dumps(CACHE).replace("3.5", "1" + "0" * 400), "OverflowError"),
    ("c.json", json.dumps(CACHE).replace("3.5", "NaN"), "NaN is no number in JSON"),
]


@pytest.mark.parametrize(("name", "text", "message"), HOSTILE)
def test_what_is_no_measurement_is_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, text)


def read(path: Path, text: str) -> GpuTable:
    path.write_text(text)
    (table,) = load_tables(path, {"pnpoly": find_description("pnpoly")})
    return table


@pytest.mark.parametrize("end", ["}}", "", ",\n"])
def test_a_cache_closed_or_not(tmp_path: Path, end: str) -> None:
    table = read(tmp_path / "c.json", json.dumps(CACHE).removesuffix("}}") + end)
    assert (table.space, table.device.name) == ("c", "NVIDIA RTX A4000")
    assert [key[:2] for key in table.keys] == [(64, 1), (64, 2)]
    assert np.array_equal(table.runtime_ms, [3.5, np.nan], equal_nan=True)


def test_t4_results_are_of_the_gpu_in_the_name(tmp_path: Path) -> None:
    table = read(tmp_path / "RTX 3090.json", json.dumps(T4))
    assert table.device.name == "NVIDIA GeForce RTX 3090"
    assert [key[1] for key in table.keys] == [1, 2, 4]
    assert np.allclose(table.runtime_ms, [3.5, np.nan, 7.0], equal_nan=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("results.json", json.dumps(T4), "got 'results'; results in the T4 format are named after theirs"),
        ("c.json", json.dumps({**CACHE, "device_name": "Voodoo"}), "a GPU of the catalog, got 'Voodoo'"),
        ("c.json", "[1, 2", "expected a cache of Kernel Tuner, or its results in the T4 format"),
        ("c.json", "{}", "expected a cache of Kernel Tuner, or its results in the T4 format: KeyError"),
        ("A4000.json", json.dumps({"results": [{"invalidity": "correct"}]}), "KeyError: 'measurements'"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, text)
