from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from gnnperf.devices import DeviceSpec, load_device
from gnnperf.errors import InputError
from gnnperf.frontends.operators import (
    Convolution,
    Elementwise,
    LayerNorm,
    MatMul,
    Operator,
    Reduction,
    Softmax,
)
from gnnperf.nn import load_checkpoint
from gnnperf.nn.runtime import RuntimeHead, roofline_s
from gnnperf.nn.runtime.columns import assumptions, device_columns, on_device
from gnnperf.shipped import shipped

OPERATORS: tuple[Operator, ...] = (
    MatMul(4096, 4096, 1024, linear=True),
    MatMul(512, 512, 64, batch=96),
    Softmax(16384, 2048),
    LayerNorm(16384, 1024),
    Elementwise("add", 1 << 26, 2),
)


@pytest.fixture(scope="module")
def head() -> RuntimeHead:
    return load_checkpoint(shipped("checkpoints/gpu-runtime"), RuntimeHead)


def test_roofline_by_hand() -> None:
    x = on_device([o.workload() for o in (OPERATORS[0], OPERATORS[4])], load_device("l4"))
    assert roofline_s(x).tolist() == pytest.approx([2 * 4096 * 4096 * 1024 / 30.29e12, 3 * 4 * 2**26 / 300e9])


@pytest.mark.parametrize("gpu", ["l4", "h200", "t4", "k20", "mi210", "w6600"])
def test_intervals_are_nested_and_no_kernel_beats_the_memory(head: RuntimeHead, gpu: str) -> None:
    found = head.predict([o.workload() for o in OPERATORS], load_device(gpu))
    inner = found.runtime_s, found.runtime_s
    for low, high in (found.bounds_s[level] for level in (0.5, 0.8, 0.95)):
        assert bool((low < inner[0]).all() and (high > inner[1]).all())
        inner = low, high
    assert float(found.runtime_s[4]) > float(found.roofline_s[4])


def test_first_caches_by_hand() -> None:
    caches = {gpu: device_columns(load_device(gpu))["l1"] / 1024 for gpu in ("p100-pcie-16gb", "p4", "mi100")}
    assert caches == {"p100-pcie-16gb": 24, "p4": 48, "mi100": 16}
    assert device_columns(load_device("a100-pcie-40gb"))["l1"] == 192 * 1024


def test_more_work_takes_longer(head: RuntimeHead) -> None:
    sizes = [MatMul(n, n, n, linear=True).workload() for n in (512, 1024, 2048, 4096, 8192)]
    times = head.predict(sizes, load_device("a10")).runtime_s
    assert bool((times[1:] > 2 * times[:-1]).all())


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "t4", "mi250x"])
def test_a_plain_reduction_takes_as_long_as_its_bytes_in_any_shape(head: RuntimeHead, gpu: str) -> None:
    """Short rows share blocks, and blocks share long rows."""
    found = head.predict(
        [Reduction("add", 2**n, 2 ** (26 - n)).workload() for n in range(25)], load_device(gpu)
    )
    ratio = found.runtime_s / found.roofline_s
    assert float(ratio.min()) > 1.0 and float(ratio.max()) < 2.5


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "t4", "h200", "mi250x"])
def test_a_product_with_a_vector_takes_as_long_as_its_matrix(head: RuntimeHead, gpu: str) -> None:
    """However few tiles its result would have: the scores of one query, and what they weigh."""
    scores, weighed = MatMul(1, 8192, 128, batch=64), MatMul(1, 128, 8192, batch=64)
    column = MatMul(8192, 1, 8192, linear=True)
    found = head.predict([o.workload() for o in (scores, weighed, column)], load_device(gpu))
    assert float((found.runtime_s / found.roofline_s).max()) < 3.5


def test_a_board_with_less_power_is_slower_at_large_products_only(head: RuntimeHead) -> None:
    device = load_device("l40s")
    weak = dataclasses.replace(device, board_power_w=70.0)
    large, add = OPERATORS[0].workload(), OPERATORS[4].workload()
    full, less = (head.predict([large, add], d).runtime_s for d in (device, weak))
    assert float(less[0] / full[0]) > 1.5
    assert float(less[1]) == pytest.approx(float(full[1]))


def test_intervals_are_wider_far_away(head: RuntimeHead) -> None:
    def width(operator: Operator, device: DeviceSpec) -> float:
        low, high = head.predict([operator.workload()], device).bounds_s[0.8]
        return math.log(float(high / low))

    t4 = load_device("t4")
    near = width(OPERATORS[0], t4)
    assert width(OPERATORS[0], load_device("b200")) > 1.2 * near  # a device unlike those that were measured
    assert width(MatMul(1 << 17, 1 << 17, 1 << 15, linear=True), t4) > near  # a workload larger than any
    assert (
        width(Convolution(8, 64, 64, (56, 56), (3, 3), (1, 1), (0, 0)), t4) > near
    )  # a family that was not measured


def test_dtypes_are_physics_with_wider_intervals(head: RuntimeHead) -> None:
    device = load_device("h100-sxm")
    dtypes = ("fp64", "fp32", "tf32", "fp16", "fp8")
    large = [dataclasses.replace(OPERATORS[0], m=16384, dtype=d).workload() for d in dtypes]
    found = head.predict(large, device)
    times, rooflines = found.runtime_s.tolist(), found.roofline_s.tolist()
    assert times[0] == pytest.approx(times[1], rel=0.1)  # matrix units give fp64 the peak of fp32 there
    assert times[1] > 4 * times[2] > 6 * times[3] > 8 * times[4]
    assert rooflines[3] == pytest.approx(large[3].flops / 989.4e12)
    assert all(time > least for time, least in zip(times, rooflines, strict=True))
    low, high = (torch.log(bound) for bound in found.bounds_s[0.8])
    width = (high - low).tolist()
    assert all(w > 1.9 * width[1] for w in (width[0], *width[2:]))
    adds = [dataclasses.replace(OPERATORS[4], dtype=d).workload() for d in ("fp32", "fp16")]
    full, half = head.predict(adds, device).runtime_s.tolist()
    assert half == pytest.approx(full / 2, rel=0.1)


def test_a_dtype_that_a_gpu_does_not_have_is_refused(head: RuntimeHead) -> None:
    fp8 = dataclasses.replace(OPERATORS[0], dtype="fp8").workload()
    with pytest.raises(InputError, match=r"Tesla T4: expected a dtype .*\(fp64, fp32, fp16, int8\), got fp8"):
        head.predict([fp8], load_device("t4"))
    relu = dataclasses.replace(OPERATORS[4], dtype="bf16").workload()
    assert head.predict([relu], load_device("t4")).runtime_s.isfinite().all()  # nothing is multiplied in it


def test_fp64_is_not_faster_than_its_peak(head: RuntimeHead) -> None:
    gelu = Elementwise("gelu", 1 << 26, dtype="fp64").workload()
    found = head.predict([gelu], load_device("t4"))
    assert float(found.runtime_s[0]) >= gelu.flops / 254e9 * 0.999


def test_nothing_is_said_of_devices_unlike_all_others(head: RuntimeHead) -> None:
    work = OPERATORS[0].workload()
    assert head.objection(work, load_device("h100-sxm")) is None
    assert "5 doublings of peak FLOP rate away" in (head.objection(work, load_device("jetson-nano")) or "")
    silent = dataclasses.replace(load_device("a10"), board_power_w=None)
    assert head.objection(work, silent) is None
    with pytest.raises(InputError, match="expected a GPU, got a cpu"):
        head.predict([work], load_device("epyc-zen5-2vcpu"))
    with pytest.raises(InputError, match="boost_mhz is needed and not known"):
        head.predict([work], dataclasses.replace(load_device("l4"), boost_mhz=None))


def test_a_few_runs_correct_a_device(head: RuntimeHead) -> None:
    device = load_device("a4000")
    works = [MatMul(n, n, n, linear=True).workload() for n in (1024, 1536, 2048, 3072, 4096)]
    x = on_device(works, device)
    before = head.predict(works, device)
    truth = 1.3 * before.runtime_s
    off = []
    for count in (1, 5):
        part = {name: values[:count] for name, values in x.items()}
        after = head.calibrated(part, truth[:count]).predict(works, device)
        off.append(float(torch.log(truth / after.runtime_s).abs().max()))
        low, high = after.bounds_s[0.8]
        assert bool((high / low < before.bounds_s[0.8][1] / before.bounds_s[0.8][0]).all())
    assert off[1] < off[0] < math.log(1.3)
    other = head.calibrated({n: v[:1] for n, v in x.items()}, truth[:1])
    add = [OPERATORS[4].workload()]
    plain, after = (h.predict(add, device).runtime_s for h in (head, other))
    assert float(after) == pytest.approx(float(plain), rel=0.02)  # that runs at the memory's pace
    with pytest.raises(InputError, match="all of them positive"):
        head.calibrated(x, torch.zeros(5, dtype=torch.float64))


def test_kernels_in_a_sequence_share_the_power(head: RuntimeHead) -> None:
    device = load_device("l4")
    works = [OPERATORS[0].workload(), OPERATORS[4].workload()]
    x = on_device(works, device)
    once, ten = (head.sequence_s(x, torch.full((2,), n, dtype=torch.float64)) for n in (1.0, 10.0))
    assert ten == pytest.approx(10 * once)
    alone = head.predict(works, device).runtime_s
    assert once < float(alone.sum())
    unlimited = on_device(works, dataclasses.replace(device, board_power_w=1000.0))
    assert head.sequence_s(unlimited, torch.ones(2, dtype=torch.float64)) < 0.95 * once


def test_what_a_description_leaves_out(head: RuntimeHead) -> None:
    whole = load_device("l4")
    work = [OPERATORS[0].workload()]
    time = head.predict(work, whole).runtime_s
    partial = dataclasses.replace(whole, name="Mine", process_nm=None, memory=None)
    assert torch.equal(head.predict(work, partial).runtime_s, time)  # another Ada board says the same
    assert [a for a in assumptions(partial) if "process_nm is not given: taken as 5" in a]
    silent = dataclasses.replace(whole, board_power_w=None)
    assert float(head.predict(work, silent).runtime_s[0]) < 0.8 * float(time[0])
    assert any("power is taken as no limit" in a for a in assumptions(silent))
    alien = dataclasses.replace(whole, isa="x1", arch="x", process_nm=None, memory=None)
    assert any("7 nm, or HBM" in a for a in assumptions(alien))
