"""Subscripts that read indices from a buffer: what is counted, by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gnnperf.devices import load_device
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import Description, physical_features, plan, read_description
from gnnperf.frontends.gpu_kernels.nest import scheduled_graph
from gnnperf.frontends.gpu_kernels.traffic import Traffic

N = 4096
GATHER: dict[str, Any] = {
    "name": "gather",
    "sizes": {"n": N},
    "parameters": {"threads": [64]},
    "buffers": {
        "index": {"dtype": "int32", "shape": ["n"]},
        "x": {"dtype": "float32", "shape": ["n"]},
        "y": {"dtype": "float32", "shape": ["n"]},
    },
    "loops": [
        {"axis": "i", "extent": "n // threads", "bind": "block.x"},
        {"axis": "i", "extent": "threads", "bind": "thread.x"},
    ],
    "compute": ["y[i] = x[index[i]]"],
}


def described(folder: Path, values: Any, changes: dict[str, Any] | None = None) -> Description:
    document = yaml.safe_load(yaml.safe_dump({**GATHER, **(changes or {})}))
    if isinstance(values, np.ndarray):
        np.save(folder / "index.npy", values)
        values = "index.npy"
    if values is not None:
        document["buffers"]["index"]["values"] = values
    (folder / "gather.yaml").write_text(yaml.safe_dump(document))
    return read_description(folder / "gather.yaml")


def save_many(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, np.arange(N))


def claim_more(path: Path) -> None:
    with path.open("wb") as file:
        shape = {"descr": "<i8", "fortran_order": False, "shape": (2**50,)}
        np.lib.format.write_array_header_1_0(file, shape)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (save_many, "expected one array, got an archive"),
        (claim_more, "cannot read"),
        (lambda path: path.write_bytes(b"PK\3\4"), "cannot read"),
        (lambda path: path.write_bytes(b""), "cannot read"),
        (lambda path: os.mkfifo(path), "expected a file beside the description"),
    ],
)
def test_files_of_values_that_hold_none(
    write: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    write(tmp_path / "v.npy")
    with pytest.raises(InputError, match=message):
        described(tmp_path, "v.npy")


def test_values_are_not_read_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "out.npy", np.arange(N))
    for name in ("../out.npy", str(tmp_path / "out.npy")):
        with pytest.raises(InputError, match="expected a file beside the description, got"):
            described(tmp_path / "in", name)


def sectors(description: Description) -> float:
    return float(Traffic(plan(description, [{}]), 32).global_memory()[0][0])


@pytest.mark.parametrize(
    ("values", "of_x"),
    [
        (np.arange(N), 4),  # 32 neighbours of 4 bytes in sectors of 32
        (np.zeros(N, dtype=int), 1),
        (np.arange(N) * 8 % N, 32),  # each in a sector of its own
        (np.arange(N) // 2, 2),
        (1, 1),
        (8, 1),  # whatever is drawn lies in one sector
    ],
)
def test_sectors_of_a_warp_that_gathers(tmp_path: Path, values: Any, of_x: int) -> None:
    """Beside those of x: 4 sectors of the indices, 4 of what is written."""
    assert sectors(described(tmp_path, values)) == of_x + 4 + 4


def test_indices_drawn_from_a_wide_range_hardly_share_sectors(tmp_path: Path) -> None:
    assert 30 <= sectors(described(tmp_path, "1000 * n")) - 8 <= 32


def test_a_block_reads_no_more_than_it_meets(tmp_path: Path) -> None:
    """64 threads: 64 indices and results, and 64 elements of x, or the 8 that there are, of 4 bytes."""
    for values, elements in (("n", 64), (8, 8), (np.zeros(N, dtype=int), 1)):
        (features,) = physical_features(plan(described(tmp_path, values), [{}]), load_device("l4"))
        assert features["block_bytes"][0] == 4 * (64 + 64 + elements)


DISPERSION = {
    "parameters": {"threads": [32]},
    "sizes": {"n": N, "channels": 16, "trials": 8},
    "buffers": {
        "index": {"dtype": "int32", "shape": ["trials", "channels"]},
        "x": {"dtype": "float32", "shape": ["channels", "2 * n"]},
        "y": {"dtype": "float32", "shape": ["trials", "n"]},
    },
    "loops": [
        {"axis": "d", "extent": "trials", "bind": "block.y"},
        {"axis": "i", "extent": "n // threads", "bind": "block.x"},
        {"axis": "i", "extent": "threads", "bind": "thread.x"},
        {"axis": "c", "extent": "channels"},
    ],
    "registers": ["y"],
    "compute": ["y[d, i] += x[c, i + index[d, c]]"],
}


@pytest.mark.parametrize(("delay", "of_x"), [(16, 4), (3, 5)])
def test_a_shift_that_a_warp_shares_keeps_its_loads_together(tmp_path: Path, delay: int, of_x: int) -> None:
    """In each of 16 channels: the sectors of x, one more where a shift does not end on a sector, and one of
    the index, which all lanes share; 4 of the result in the end."""
    description = described(tmp_path, np.full((8, 16), delay), DISPERSION)
    assert sectors(description) == 16 * (of_x + 1) + 4
    assert scheduled_graph(description, {}).nodes


@pytest.mark.parametrize(
    ("values", "changes", "message"),
    [
        (None, {}, "x is read where index says; give buffers.index values"),
        ("none.npy", {}, "expected a file beside the description, got 'none.npy'"),
        (np.zeros((2, 2), dtype=int), {}, "expected integers in 1 dimensions, got int64 in 2"),
        (np.zeros(4), {}, "expected integers in 1 dimensions, got float64 in 1"),
        ("threads_", {}, "'threads_' is neither a parameter nor a size"),
        (8, {"compute": ["y[index[i]] = x[i]"]}, "expected what is written at sums of axes and integers"),
        (8, {"compute": ["y[i] = x[i * index[i]]"]}, "expected subscripts that are sums of axes"),
        (8, {"stage": [{"buffer": "x", "threads": ["threads"]}]}, "got x, whose tile nobody knows"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, values: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        described(tmp_path, values, changes)
