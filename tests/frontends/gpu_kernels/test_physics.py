"""Physical features, against cases worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gnnperf.devices import load_device
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import find_description, physical_features, plan

A100 = load_device("a100-pcie-40gb")


def of(kernel: str, **configuration: int) -> dict[str, float]:
    (found,) = physical_features(plan(find_description(kernel), [configuration]), A100)
    return {name: float(values[0]) for name, values in found.items()}


def test_gemm_by_hand() -> None:
    found = of("gemm", MWG=64, NWG=64, KWG=32, MDIMC=16, NDIMC=16, MDIMA=16, NDIMB=16, VWM=2, VWN=2, STRM=1)
    assert found["flops"] == 2 * 4096**3
    assert found["threads"] == 256
    assert found["blocks"] == 64 * 64
    assert found["shared_bytes"] == 2 * 32 * 64 * 4
    assert found["independent"] == 4 * 4  # results of a thread
    assert found["staged"] == 1
    assert found["coalesced"] == pytest.approx(1.0)
    assert found["distinct_bytes"] == 3 * 4096**2 * 4
    assert found["roofline_s"] == pytest.approx(2 * 4096**3 / (A100.peak_gflops_fp32 * 1e9))


def test_doubles_are_held_to_the_peak_of_doubles() -> None:
    found = of("expdist")
    assert found["roofline_s"] == pytest.approx(found["flops"] / (A100.peak_gflops_fp64 * 1e9))


def test_unstaged_loads_with_a_stride_use_less_of_a_sector() -> None:
    tile = dict(MWG=64, NWG=64, MDIMC=16, NDIMC=16, MDIMA=16, NDIMB=16, VWM=1, VWN=1, SA=0, SB=0)
    near, far = of("gemm", **tile, STRM=1, STRN=1), of("gemm", **tile, STRM=0, STRN=0)
    assert near["coalesced"] > far["coalesced"]
    assert near["t_l1"] < far["t_l1"]


def test_windows_that_overlap_are_loaded_once() -> None:
    block = dict(block_size_x=64, use_shmem=1, tile_size_x=1, tile_size_y=4)
    # A thread's rows are block_size_y apart: of four windows of 15 rows, 15 + 3 * block_size_y are different.
    for threads, rows in ((1, 18), (2, 21), (8, 39), (16, 60)):
        found = of("convolution2d", **block, block_size_y=threads)
        staging = -(-(64 + 14) * (4 * threads + 14) // (64 * threads))
        assert found["shared_loads"] == pytest.approx(15 * rows, abs=1.1 * staging)


def test_padding_takes_bank_conflicts_away() -> None:
    block = dict(block_size_x=16, block_size_y=16, tile_size_x=1, tile_size_y=1, use_shmem=1)
    assert (
        of("convolution2d", **block, use_padding=1)["shared_bytes"]
        > of("convolution2d", **block)["shared_bytes"]
    )
    assert (
        of("convolution2d", **block)["conflicts"] >= of("convolution2d", **block, use_padding=1)["conflicts"]
    )


def test_a_block_that_does_not_fit_is_flagged() -> None:
    assert of("convolution2d", block_size_x=32, block_size_y=4)["fits"] == 1
    assert of("convolution2d", block_size_x=256, block_size_y=4, tile_size_x=4, tile_size_y=4)["fits"] == 0


def test_fewer_registers_where_more_blocks_are_asked_for() -> None:
    block = dict(block_size_x=256, block_size_y=2, tile_size_x=4, tile_size_y=4)
    assert of("hotspot", **block, blocks_per_sm=4)["registers"] < of("hotspot", **block)["registers"]


def test_devices_that_will_not_do_are_told() -> None:
    planned = plan(find_description("gemm"), [{}])
    with pytest.raises(InputError, match="expected a GPU, got a cpu"):
        physical_features(planned, replace(A100, kind="cpu"))
    with pytest.raises(InputError, match="l2_bytes is needed and not known"):
        physical_features(planned, replace(A100, l2_bytes=None))
