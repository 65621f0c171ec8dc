"""NVIDIA GPUs, without one: a library stands in for the driver's, and text for what nvidia-smi prints."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from gnnperf.cli.main import run
from gnnperf.devices import find_compiler, find_gpus, load_device, measure_gpu, nvidia
from gnnperf.errors import MeasureError

DRIVER = r"""
#include <cstdio>
#include <cstring>
#include <cstddef>
extern "C" {
int cuInit(unsigned) { return CU_INIT; }
int cuDeviceGetCount(int* n) { *n = 2; return 0; }
int cuDeviceGet(int* device, int index) { *device = 10 + index; return 0; }
int cuDeviceGetName(char* text, int size, int device) {
  std::snprintf(text, size, device == 10 ? "NVIDIA H100 80GB HBM3" : "NVIDIA Made Up 5000"); return 0;
}
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, size, device == 10 ? "0000:4E:00.0" : "0000:8f:00.0"); return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { *bytes = std::size_t(16) << 30; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 10: *value = 32; return 0;        case 13: *value = 1500000; return 0;
    case 16: *value = 50; return 0;        case 36: *value = 9000000; return 0;
    case 37: *value = 256; return 0;       case 38: *value = 4 << 20; return 0;
    case 39: *value = 1536; return 0;      case 75: *value = 8; return 0;
    case 76: *value = 7; return 0;         case 81: *value = 100 << 10; return 0;
    case 82: *value = 65536; return 0;     case 97: *value = 99 << 10; return 0;
  }
  return 1;
}
}
"""
SMI = "00000000:4E:00.0, 580.159.04, 650.00, 1980\n00000000:8F:00.0, 580.159.04, [N/A], 1500\n"


def driver(folder: Path, monkeypatch: pytest.MonkeyPatch, init: int = 0) -> None:
    source, library = folder / f"driver{init}.cpp", folder / f"driver{init}.so"
    source.write_text(DRIVER)
    command = [find_compiler()[0], "-shared", "-fPIC", f"-DCU_INIT={init}", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    monkeypatch.setattr(nvidia, "_LIBRARY", str(library))
    monkeypatch.setattr(nvidia, "_smi", lambda: SMI)


def test_gpus_are_described_by_their_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(tmp_path, monkeypatch)
    (known, other), why = find_gpus()
    assert why == ""
    h100 = load_device("h100")
    assert (known.index, known.spec.name, known.spec.process_nm) == (0, h100.name, h100.process_nm)
    assert (known.spec.board_power_w, known.driver) == (650.0, "580.159.04")
    spec = other.spec
    assert (spec.name, spec.arch, spec.isa, spec.cores) == ("NVIDIA Made Up 5000", "ampere", "sm_87", 50)
    assert (spec.peak_gflops_fp32, spec.bandwidth_gbps) == (2 * 128 * 50 * 1.5, 576.0)
    assert (spec.threads, spec.memory_bytes, spec.board_power_w) == (50 * 1536, 16 << 30, None)


def test_a_driver_without_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(tmp_path, monkeypatch, init=100)
    assert find_gpus() == ([], "the NVIDIA driver sees no GPU (cuInit returned 100)")
    monkeypatch.setattr(nvidia, "_LIBRARY", "libnone.so.1")
    assert find_gpus() == ([], "no NVIDIA driver here (libnone.so.1 was not found)")


def test_the_command_says_what_it_did_not_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gnnperf.devices.probe", lambda refresh: load_device("host"))
    driver(tmp_path, monkeypatch)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert run(["devices", "probe", "--json"]) == 0
    gpus = json.loads(capfd.readouterr().out)["gpus"]
    assert [(gpu["device"], gpu["measured"]) for gpu in gpus] == [("gpu 0", {}), ("gpu 1", {})]
    assert run(["devices", "probe"]) == 0
    shown = capfd.readouterr().out
    assert "NVIDIA Made Up 5000" in shown
    assert "cannot use the GPU" in shown
    monkeypatch.setattr(nvidia, "_LIBRARY", "libnone.so.1")
    assert run(["devices", "probe"]) == 0
    assert "no GPU: no NVIDIA driver here" in capfd.readouterr().out


def test_torch_without_cuda_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(MeasureError, match="cannot use the GPU"):
        measure_gpu(0)


def test_a_gpu_without_memory_to_spare_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device", lambda _: nullcontext())

    def full(index: int) -> tuple[int, int]:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("torch.cuda.mem_get_info", full)
    with pytest.raises(MeasureError, match="the GPU cannot be measured: CUDA out of memory"):
        measure_gpu(0)
