"""Collecting configurations of tunable GPU kernels on the CUDA GPU of this machine.

The kernels are `cuda/*.cu`, compiled by torch's NVRTC for every configuration. A result that differs from
torch's is kept as a wrong one. It takes a torch that was built with CUDA.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from gnnperf.corpus.config import CUDA, KernelConfig
from gnnperf.devices import FoundGpu
from gnnperf.devices.nvidia import times_s
from gnnperf.errors import MeasureError, first_line
from gnnperf.frontends.gpu_kernels import configurations_of, find_description
from gnnperf.measure.gpu_operators import RUNS, cuda_torch, write_table
from gnnperf.measure.record_log import Line, RecordLog
from gnnperf.measure.remote.measuring import gpu_device

BASELINE = "first configuration"
TABLE = "tunable_kernels.parquet"
TOLERANCE = 1e-3
"""Of a result, relative to the largest."""


def compiler_options(values: Mapping[str, Any]) -> list[str]:
    """Macros for a compiler."""
    return [f"-D{name}={value}" for name, value in values.items()]


def source_of(kernel: str, macros: Mapping[str, str]) -> str:
    """The kernel in CUDA, with macros that are too long for options."""
    defined = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    return defined + (CUDA / f"{kernel}.cu").read_text(encoding="utf-8")


def launch_of(kernel: str, values: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(grid, block) of a configuration with its sizes."""
    if kernel == "gemm":
        blocks = values["M"] // values["MWG"], values["N"] // values["NWG"]
        return (*blocks, 1), (values["MDIMC"], values["NDIMC"], 1)
    x, y = (values[f"block_size_{d}"] * values[f"tile_size_{d}"] for d in "xy")
    return (-(-values["W"] // x), -(-values["H"] // y), 1), (
        values["block_size_x"], values["block_size_y"], 1
    )  # fmt: skip


def data_of(
    kernel: str, sizes: Mapping[str, int], torch: Any, device: str
) -> tuple[list[Any], Any, Any, dict[str, str]]:
    """(arguments, where the result lands, what it has to be, further macros) of a kernel."""
    torch.manual_seed(0)
    if kernel == "gemm":
        m, n, k = (sizes[name] for name in "MNK")
        a, b, c = (torch.rand(shape, device=device) for shape in ((k, m), (k, n), (n, m)))
        return [a, b, c], c, b.T @ a, {}
    w, h, fw, fh = (sizes[name] for name in ("W", "H", "filter_width", "filter_height"))
    pitch = w + fw - 1
    # Blocks reach over the edge: at most 1024 rows and columns, which are read and not used.
    memory = torch.rand((h + fh - 1 + 1024) * pitch + 2048, device=device)
    image = memory[: (h + fh - 1) * pitch].view(1, 1, h + fh - 1, pitch)
    weights, out = torch.rand((fh, fw), device=device), torch.empty((h, w), device=device)
    expected = torch.nn.functional.conv2d(image, weights[None, None])[0, 0]
    listed = ",".join(f"{v:.9g}f" for v in weights.flatten().tolist())
    return [out, memory, weights], out, expected, {"FILTER": listed}


class _CudaKernel:
    """A kernel with its data on the GPU."""

    def __init__(self, torch: Any, name: str, sizes: Mapping[str, int]) -> None:
        self.torch, self.name, self.sizes = torch, name, sizes
        self.arguments, self.out, self.expected, macros = data_of(name, sizes, torch, "cuda")
        self.source = source_of(name, macros)

    def measure(self, configuration: Mapping[str, int]) -> Line:
        """What a record says of a configuration: status and, where it is right, samples."""
        values = {**self.sizes, **configuration}
        grid, block = launch_of(self.name, values)
        self.out.fill_(float("nan"))
        try:
            run = self.torch.cuda._compile_kernel(
                self.source, self.name, nvcc_options=compiler_options(values)
            )
        except RuntimeError as error:
            return {"status": "build_error", "detail": first_line(error)}

        def launch() -> None:
            run(grid=grid, block=block, args=self.arguments)

        try:
            launch()
            self.torch.cuda.synchronize()
            far = (self.out - self.expected).abs() > TOLERANCE * self.expected.abs().max()
            if bool((far | self.out.isnan()).any()):
                return {"status": "wrong_result"}
            return {"status": "ok", "samples_s": times_s(launch, self.torch, RUNS)}
        except RuntimeError as error:
            return {"status": "run_error", "detail": first_line(error)}


@dataclass
class KernelCollector:
    """Measures what the log does not have yet. advance: called with steps and what comes next."""

    config: KernelConfig
    log: RecordLog
    advance: Callable[[int, str], None] = lambda _steps, _doing: None

    @property
    def steps(self) -> int:
        return self.config.configurations_per_kernel * len(self.config.kernels)

    def run(self) -> None:
        """Go on until every kernel has its configurations, and write them as the table that `gnnperf propose`
        and `gnnperf eval gpu-schedules` read, too.

        Raises MeasureError where there is no GPU, or where a configuration failed in a way that stays with
        the process: the next start goes on after it.
        """
        torch, gpu = cuda_torch()
        self.log.require_device(gpu_device(gpu)["fingerprint"])
        for name in self.config.kernels:
            self._kernel(torch, gpu, name)
        write_table(list(table_rows(self.log)), self.log.folder / TABLE)

    def _kernel(self, torch: Any, gpu: FoundGpu, name: str) -> None:
        description = find_description(name)
        task = "-".join([name, *(f"{size}_{value}" for size, value in description.sizes.items())])
        kernel = _CudaKernel(torch, name, description.sizes)
        space = configurations_of(description)
        if task not in self.log.tasks:
            self.log.add("tasks", self._task_line(torch, gpu, task, kernel, space[0]))
        order = np.random.default_rng(self.config.seed).permutation(len(space))
        chosen = [space[i] for i in order[: self.config.configurations_per_kernel]]
        for configuration in chosen:
            key = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()[:12]
            self.advance(1, name)
            if key in self.log.records.get(task, {}):
                continue
            schedule = {"kind": "configuration", "values": dict(configuration)}
            outcome = kernel.measure(configuration)
            about = {"task": task, "schedule_id": key, "schedule": schedule, "origin": "random"}
            self.log.add("records", {**about, **outcome})
            if outcome["status"] == "run_error":
                raise MeasureError(
                    f"{name}: a configuration ended in {outcome['detail']}; run the same command to go on"
                )

    def _task_line(
        self, torch: Any, gpu: FoundGpu, task: str, kernel: _CudaKernel, default: Mapping[str, int]
    ) -> Line:
        baseline = kernel.measure(default)
        if baseline["status"] != "ok":
            raise MeasureError(f"{task}: the {BASELINE}: {baseline['status']} {baseline.get('detail', '')}")
        return {
            "task": task, "name": kernel.name, "family": kernel.name, "frontend": "gpu_kernels",
            "parameters": dict(kernel.sizes),
            "baseline": {"name": BASELINE, "samples_s": baseline["samples_s"]},
            "device": gpu_device(gpu), "threads": gpu.spec.threads,
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda, "driver": gpu.driver},
            "collected": datetime.now(UTC).isoformat(timespec="seconds"),
        }  # fmt: skip


def table_rows(log: RecordLog) -> Iterator[dict[str, Any]]:
    """A log of configurations as rows of tunable_kernels.parquet."""
    for name, task in log.tasks.items():
        for line in log.records.get(name, {}).values():
            samples_ms = 1e3 * np.array(line.get("samples_s", ()))
            valid = line["status"] == "ok"
            yield {
                "kernel": task["name"], "space": f"collected_{task['name']}",
                "device": task["device"]["name"],
                "problem_size": json.dumps(list(task["parameters"].values())),
                "params": json.dumps(line["schedule"]["values"]),
                "time_ms": float(samples_ms.mean()) if valid else None,
                "time_std_ms": float(samples_ms.std()) if valid else None, "n_rep": len(samples_ms),
                "valid": valid, "error": line.get("detail") or (None if valid else line["status"]),
                "source": "gnnperf collect",
            }  # fmt: skip
