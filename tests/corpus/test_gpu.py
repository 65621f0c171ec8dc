"""The tunable kernels that are collected, run on the CPU: a thread for each thread of a block."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from gnnperf.cli.main import run
from gnnperf.corpus import gpu
from gnnperf.corpus.config import KernelConfig, load_config
from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import find_compiler, load_device, nvidia
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import find_description, plan
from gnnperf.measure import gpu_operators
from gnnperf.measure.record_log import RecordLog

CUDA_ON_CPU = """
#include <barrier>
#include <thread>
#include <vector>
struct Index { int x, y, z; };
static thread_local Index threadIdx;
static Index blockIdx;
static std::barrier<>* together;
#define __global__
#define __shared__ static
#define __constant__ static
#define __launch_bounds__(threads)
#define __align__(bytes) alignas(bytes)
static float __ldg(const float* address) { return *address; }
static void __syncthreads() { together->arrive_and_wait(); }
"""
LAUNCH = """
template <class Kernel, class... Arguments>
static void launch(Kernel kernel, const int* grid, const int* block, Arguments... arguments) {
  for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x) {
      std::barrier<> all(block[0] * block[1]);
      together = &all;
      std::vector<std::jthread> threads;
      for (int y = 0; y < block[1]; ++y)
        for (int x = 0; x < block[0]; ++x)
          threads.emplace_back([=] { threadIdx = {x, y, 0}; kernel(arguments...); });
    }
}
"""
SIZES = {
    "gemm": {"M": 64, "N": 32, "K": 32},
    "convolution2d": {"W": 70, "H": 19, "filter_width": 5, "filter_height": 3},
}
TILES = {"MWG": 32, "NWG": 16, "KWG": 16, "KWI": 2, "MDIMC": 8, "NDIMC": 8, "MDIMA": 8, "NDIMB": 8}
BLOCK = {"block_size_x": 16, "block_size_y": 2, "tile_size_x": 2, "tile_size_y": 3}


@pytest.mark.parametrize(
    ("kernel", "configuration"),
    [
        ("gemm", {**TILES, "VWM": 4, "VWN": 2, "SA": 1, "SB": 1, "STRM": 0, "STRN": 1}),
        ("gemm", {**TILES, "VWM": 1, "VWN": 2, "SA": 0, "SB": 0, "STRM": 1, "STRN": 0}),
        ("gemm", {**TILES, "VWM": 2, "VWN": 1, "MDIMA": 16, "SA": 1, "SB": 0, "STRM": 1, "STRN": 1}),
        ("convolution2d", {**BLOCK, "use_padding": 1, "read_only": 1, "use_shmem": 1, "use_cmem": 1}),
        ("convolution2d", {**BLOCK, "use_padding": 0, "read_only": 0, "use_shmem": 0, "use_cmem": 0}),
    ],
)
def test_kernels_compute_what_torch_does(tmp_path: Path, kernel: str, configuration: dict[str, int]) -> None:
    values = {**SIZES[kernel], **configuration}
    assert plan(find_description(kernel), [values]).valid.all()
    arguments, out, expected, macros = gpu.data_of(kernel, SIZES[kernel], torch, "cpu")
    source, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    run = 'extern "C" void run(const int* grid, const int* block, float* a, float* b, float* c) {\n'
    run += f"  launch({kernel}, grid, block, a, b, c);\n}}\n"
    source.write_text(CUDA_ON_CPU + gpu.source_of(kernel, macros) + LAUNCH + run)
    flags = ["-std=c++20", "-O1", "-pthread", "-shared", "-fPIC", *gpu.compiler_options(values)]
    subprocess.run([find_compiler()[0], *flags, str(source), "-o", str(library)], check=True)
    out.fill_(float("nan"))
    grid, block = ((ctypes.c_int * 3)(*sizes) for sizes in gpu.launch_of(kernel, values))
    ctypes.CDLL(str(library)).run(grid, block, *(ctypes.c_void_p(a.data_ptr()) for a in arguments))
    assert torch.allclose(out, expected, rtol=1e-4, atol=1e-4)


CONFIG = """
name: mine
kind: configurations
kernels: [convolution2d]
configurations_per_kernel: 4
"""


class FakeTorch:
    """Compiles nothing: kernels copy what they have to compute, some of them not, and one cannot be built."""

    __version__ = "2.0"
    version = SimpleNamespace(cuda="13.0")

    def __init__(self) -> None:
        self.compiled: list[list[str]] = []
        self.cuda = SimpleNamespace(_compile_kernel=self.compile, synchronize=lambda: None)

    def compile(self, source: str, name: str, nvcc_options: list[str]) -> Any:
        self.compiled.append(nvcc_options)
        if len(self.compiled) == 3:
            raise RuntimeError("too many registers\nand more")
        wrong = len(self.compiled) == 4

        def run(grid: Any, block: Any, args: Any) -> None:
            args[0].fill_(float("nan") if wrong else 2.0)

        return run


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    found = FakeTorch()
    board = nvidia.FoundGpu(0, load_device("h100"), "580.1", 1980.0)

    def data(*_: Any) -> Any:
        return [torch.zeros(4)], torch.zeros(4), torch.full((4,), 2.0), {}

    def times(run: Any, *_: Any) -> list[float]:
        run()
        return [1e-3, 2e-3, 3e-3]

    class Same(gpu._CudaKernel):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.out = self.arguments[0]

    monkeypatch.setattr(gpu, "cuda_torch", lambda: (found, board))
    monkeypatch.setattr(gpu, "data_of", data)
    monkeypatch.setattr(gpu, "times_s", times)
    monkeypatch.setattr(gpu, "_CudaKernel", Same)
    return found


def test_configurations_are_a_corpus_and_a_table(fake: FakeTorch, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "mine.yaml")
    assert isinstance(config, KernelConfig)
    for _ in range(2):  # the second time, there is nothing left to do
        log = RecordLog(tmp_path / "corpus")
        gpu.KernelCollector(config, log).run()
        log.close()
    assert len(fake.compiled) == 5
    found = read_corpus(tmp_path / "corpus")
    (task,) = found.tasks.values()
    assert (task.family, task.baseline_s, task.device) == (
        "convolution2d", 2e-3, "cuda/sm_90/nvidia-h100-80gb-hbm3",
    )  # fmt: skip
    assert [m.status for m in found.sequence] == ["ok", "build_error", "wrong_result", "ok"]
    assert {m.schedule["kind"] for m in found.sequence} == {"configuration"}
    assert found.sequence[0].runtime_s == 2e-3
    table = pq.read_table(tmp_path / "corpus" / gpu.TABLE).to_pylist()
    assert [row["valid"] for row in table] == [True, False, False, True]
    assert [row["error"] for row in table] == [None, "too many registers", "wrong_result", None]
    assert table[0]["time_ms"] == pytest.approx(2.0)
    assert set(json.loads(table[0]["params"])) == set(find_description("convolution2d").parameters)
    log = RecordLog(tmp_path / "corpus")
    log.tasks[next(iter(log.tasks))]["device"]["fingerprint"] = "cuda/sm_80/other"
    with pytest.raises(InputError, match=r"this machine, got .* with some of cuda/sm_80/other"):
        gpu.KernelCollector(config, log).run()
    log.close()


def test_kernels_are_named_in_a_list(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CONFIG.replace("[convolution2d]", "[[gemm]]"))
    with pytest.raises(InputError, match=r"kernels: expected a list out of .*, got \[\['gemm'\]\]"):
        load_config(tmp_path / "mine.yaml")


@pytest.mark.parametrize("command", [["collect", "mine.yaml"], ["measure", "gpu", "-o", "out"]])
def test_without_a_gpu_there_is_one_line(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    monkeypatch.setattr(nvidia, "_LIBRARY", "libnone.so.1")
    assert run(command) == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "gnnperf: expected a CUDA GPU: no NVIDIA driver here (libnone.so.1 was not found)\n"
    )
    assert captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_the_grid_is_of_known_families() -> None:
    rows = [columns for columns, _ in gpu_operators.operators(torch)]
    assert len(rows) == gpu_operators.operator_count(torch) > 100
    assert {row["op_family"] for row in rows} == {"bmm", "linear", "softmax", "layernorm", "elementwise"}
