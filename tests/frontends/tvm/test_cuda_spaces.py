"""Schedules for NVIDIA GPUs, sampled without one, and the program graphs of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gnnperf.errors import InputError
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.frontends.tvm.cuda_spaces import CUDA_CORES, TENSOR_CORES, cuda_spaces
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import cuda_target
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.graph import ProgramGraph
from gnnperf.schedules.traces.document import plain

import_tvm()
HALF = TvmWorkload("matmul", {"m": 128, "n": 128, "k": 128, "dtype": "float16"})
WORKLOADS = [
    TvmWorkload("matmul", {"m": 128, "n": 128, "k": 64, "layout": "nt"}),
    TvmWorkload("batch_matmul", {"batch": 4, "m": 64, "n": 64, "k": 64}),
    TvmWorkload("conv2d", {"h": 28, "w": 28, "ci": 16, "co": 32, "kernel": 3, "padding": 1}),
    TvmWorkload("conv1d", {"length": 256, "ci": 32, "co": 64, "kernel": 3, "padding": 1}),
    TvmWorkload("softmax", {"m": 64, "n": 512}),
    TvmWorkload("layer_norm", {"m": 64, "n": 256}),
    TvmWorkload("reduce", {"m": 4096, "n": 512, "op": "sum", "axis": 1}),
    TvmWorkload("elementwise", {"m": 64, "n": 512, "chain": "add_relu"}),
]
TILED = {"matmul", "batch_matmul", "conv2d", "conv1d"}


def first(workload: TvmWorkload, space: str = CUDA_CORES, arch: str = "sm_80") -> Any:
    """A sampled schedule."""
    found = cuda_spaces(workload.build(), cuda_target(arch))[space].sample(1, 0, attempts=300)
    return next(iter(found)).sch


def counts(graph: ProgramGraph, kind: str, field: str) -> Counter[Any]:
    return Counter(node[field] for node in graph.nodes if node.kind == kind)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.kind)
def test_a_sampled_schedule_is_a_graph_with_blocks_and_threads(workload: TvmWorkload) -> None:
    graph = scheduled_graph(first(workload).mod)
    assert {"block", "thread"} <= counts(graph, "loop", "annotation").keys()
    scopes = counts(graph, "buffer", "scope")
    if workload.kind in TILED:
        assert scopes["shared"] == 2 and scopes["local"] == 1
    bound = [n["binding"] for n in graph.nodes if n.kind == "loop" and n["annotation"] in ("block", "thread")]
    assert set(bound) <= set("xyz")


def test_half_precision_has_a_space_of_tensor_cores_too() -> None:
    spaces = cuda_spaces(HALF.build(), cuda_target("h100"))
    assert list(spaces) == [CUDA_CORES, TENSOR_CORES]
    plain_one = cuda_spaces(WORKLOADS[0].build(), cuda_target("h100"))
    assert list(plain_one) == [CUDA_CORES]


def test_tensor_cores_are_instructions_that_loops_are_assigned_to() -> None:
    graph = scheduled_graph(first(HALF, TENSOR_CORES).mod)
    (product,) = (n for n in graph.nodes if n.kind == "intrinsic" and n["flops"])
    assert (product["m_extent"], product["n_extent"], product["k_extent"]) == (16, 16, 16)
    assert product["flops"] * product["instances"] == 2 * 128**3
    index = graph.nodes.index(product)
    axes = {e["axis"] for e in graph.edges if e.kind == "assigns" and e.target == index}
    assert axes == {"m", "n", "k"}
    assert not counts(scheduled_graph(first(HALF).mod), "intrinsic", "label")


def test_a_recorded_trace_gives_the_same_graph() -> None:
    """What readers of a corpus do with what was measured elsewhere."""
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    schedule = first(HALF, TENSOR_CORES)
    again = Schedule(HALF.build())
    Trace.apply_json_to_schedule(plain(schedule.trace.as_json()), again)
    assert scheduled_graph(again.mod).digest == scheduled_graph(schedule.mod).digest


@pytest.mark.parametrize(("name", "arch"), [("h100", "sm_90a"), ("A100", "sm_80"), ("sm_90a", "sm_90a")])
def test_targets_say_everything(name: str, arch: str) -> None:
    target = cuda_target(name)
    assert (str(target.kind.name), str(target.attrs["arch"])) == ("cuda", arch)
    assert int(target.attrs["max_threads_per_block"]) == 1024
    assert int(target.attrs["max_shared_memory_per_block"]) == 48 << 10
    assert int(target.attrs["thread_warp_size"]) == 32
    assert str(target.host.attrs["mcpu"]) == "x86-64-v3"


@pytest.mark.parametrize(
    ("name", "message"),
    [("mi210", "expected an NVIDIA GPU"), ("sm_12", "expected one of .*sm_80"), ("nothing", "no device")],
)
def test_what_is_no_nvidia_gpu_is_said(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cuda_target(name)
