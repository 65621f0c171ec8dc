"""The kernels that scripts/measure_gpu.py times, run on the CPU: a thread for each thread of a block."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gnnperf.devices import find_compiler, nvidia
from gnnperf.frontends.gpu_kernels import find_description, plan

SCRIPT = Path(__file__).parents[1] / "scripts" / "measure_gpu.py"
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


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
def test_kernels_compute_what_torch_does(
    script: ModuleType, tmp_path: Path, kernel: str, configuration: dict[str, int]
) -> None:
    values = {**SIZES[kernel], **configuration}
    assert plan(find_description(kernel), [values]).valid.all()
    arguments, out, expected, macros = script.data_of(kernel, SIZES[kernel], torch, "cpu")
    source, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    run = 'extern "C" void run(const int* grid, const int* block, float* a, float* b, float* c) {\n'
    run += f"  launch({kernel}, grid, block, a, b, c);\n}}\n"
    source.write_text(CUDA_ON_CPU + script.source_of(kernel, macros) + LAUNCH + run)
    flags = ["-std=c++20", "-O1", "-pthread", "-shared", "-fPIC", *script.options(values)]
    subprocess.run([find_compiler()[0], *flags, str(source), "-o", str(library)], check=True)
    out.fill_(float("nan"))
    grid, block = ((ctypes.c_int * 3)(*sizes) for sizes in script.launch_of(kernel, values))
    ctypes.CDLL(str(library)).run(grid, block, *(ctypes.c_void_p(a.data_ptr()) for a in arguments))
    assert torch.allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_without_a_gpu_it_says_so(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nvidia, "_LIBRARY", "libnone.so.1")
    monkeypatch.setattr(sys, "argv", ["measure_gpu.py", "-o", str(tmp_path / "out")])
    assert script.main() == 2
    assert capsys.readouterr().err == (
        "measure_gpu.py: expected a CUDA GPU: no NVIDIA driver here (libnone.so.1 was not found)\n"
    )
    assert not (tmp_path / "out").exists()


def test_the_grid_is_of_known_families(script: ModuleType) -> None:
    rows = [columns for columns, _ in script.operators(torch)]
    assert len(rows) > 100
    assert {row["op_family"] for row in rows} == {"bmm", "linear", "softmax", "layernorm", "elementwise"}
