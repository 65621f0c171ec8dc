"""Writing a pack: workload after workload, each in a process of its own. Stopped, it goes on."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gnnperf
from gnnperf.backends.tvm.problem import reduction_length
from gnnperf.corpus.config import PackConfig
from gnnperf.corpus.remote.build import HOST, build_library, has_nvcc
from gnnperf.errors import BuildError, InputError
from gnnperf.frontends.tvm.cuda_spaces import ATTEMPTS, TENSOR_CORES, cuda_spaces
from gnnperf.frontends.tvm.spaces import seed_of
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.record_log import RecordLog
from gnnperf.measure.remote.pack import FORMAT, HEADER, read_header
from gnnperf.measure.remote.runtime import CUDA, CUDART, LIBRARIES
from gnnperf.measure.workers import Send, each
from gnnperf.schedules.traces import program_key
from gnnperf.schedules.traces.document import plain

BASELINE = "tvm-dlight"
"""TVM's default schedules for GPUs, which its own pipeline applies to what was not tuned."""

_PROGRAM = ("__init__.py", "documents.py", "errors.py", "py.typed", "measure", "devices")

START = "measure.py"
_START = '''"""Measure the pack that this lies in: python PACK/program/measure.py -o LOG"""

from gnnperf.measure.remote.start import main

main()
'''


@dataclass
class PackWriter:
    """target: what for. processes: workloads at a time. report: gets a line after each."""

    folder: Path
    config: PackConfig
    target: Any
    processes: int = 1
    report: Callable[[str], None] = print
    _log: RecordLog = field(init=False)

    def run(self) -> RecordLog:
        """Pack every workload that is not in the folder; the log of the pack, which is closed. Raises
        InputError where the folder holds another pack."""
        self._begin()
        self._log = RecordLog(self.folder)
        receive = self._log.receiving(self.report)
        try:
            tasks = [w for w in self.config.workloads if w.name not in self._log.tasks]
            for ended, (workload, code) in enumerate(
                each(tasks, self._pack, receive, self.processes), start=1
            ):
                lines = self._log.records.get(workload.name, {}).values()
                built = sum("library" in line for line in lines)
                note = "" if code == 0 else f", FAILED with exit code {code}"
                self.report(
                    f"{ended}/{len(tasks)} {workload.name}: {len(lines)} schedules, {built} built{note}"
                )
        finally:
            self._log.close()
        return self._log

    def _begin(self) -> None:
        """The header, TVM's runtime, and the program that measures."""
        header = {
            "format": FORMAT, "name": self.config.name, "arch": str(self.target.attrs["arch"]),
            "machine_code": has_nvcc(),
            "tvm": version("apache-tvm"), "tvm_ffi": version("apache-tvm-ffi"), "gnnperf": version("gnnperf"),
        }  # fmt: skip
        if (self.folder / HEADER).exists():
            if read_header(self.folder) != header:
                raise InputError(f"{self.folder}: expected a pack for {header['arch']} written with these "
                                 "versions, got another; give another folder")  # fmt: skip
            return
        copy_runtime(self.folder / "runtime")
        copy_program(self.folder / "program")
        (self.folder / HEADER).write_text(json.dumps(header, indent=1) + "\n")

    def _pack(self, workload: TvmWorkload, send: Send) -> None:
        """In a process of its own."""
        try:
            module = workload.build()
            about = self._workload_line(workload, module)
            send(("records", self._schedules(workload, module)))
            send(("tasks", [about]))
        except (BuildError, InputError) as error:
            send(("report", f"{workload.name}: {error}"))

    def _workload_line(self, workload: TvmWorkload, module: Any) -> dict[str, Any]:
        """What the log says of a workload, with its reference and its baseline built."""
        import tvm

        reference, baseline = f"{workload.name}/reference.so", f"{workload.name}/baseline.so"
        build_library({"main": module["main"]}, tvm.target.Target(HOST), self.folder, reference)
        default = default_schedule(workload.build(), self.target)
        build_library({"main": default["main"]}, self.target, self.folder, baseline)
        return {
            "task": workload.name, "name": workload.name, "family": workload.kind, "frontend": "tvm",
            "parameters": dict(workload.params), "split": workload.split,
            "structural_hash": f"{program_key(module):016x}",
            "flops": float(tvm.s_tir.analysis.estimate_tir_flops(module)),
            "target": {"kind": str(self.target.kind.name), "arch": str(self.target.attrs["arch"])},
            "versions": {"tvm": version("apache-tvm")}, "packed": time.strftime("%Y-%m-%d", time.gmtime()),
            "arguments": [[[int(s) for s in p.shape], str(p.dtype)] for p in module["main"].params],
            "reduction_length": reduction_length(module), "seed": self.config.seed,
            "reference": reference, "baseline": {"name": BASELINE}, "baseline_library": baseline,
        }  # fmt: skip

    def _schedules(self, workload: TvmWorkload, module: Any) -> list[dict[str, Any]]:
        """Sampled and built, the same code once."""
        lines, functions = self._sampled(workload, module)
        for origin in dict.fromkeys(line["origin"] for line in lines):
            numbers = [n for n, line in enumerate(lines) if line["origin"] == origin]
            for begin in range(0, len(numbers), self.config.together):
                self._build(workload, numbers[begin : begin + self.config.together], functions, lines)
        return lines

    def _sampled(self, workload: TvmWorkload, module: Any) -> tuple[list[dict[str, Any]], dict[int, Any]]:
        """Lines, and by number the functions."""
        spaces = cuda_spaces(module, self.target)
        seed = seed_of(f"{self.config.seed} {workload.name}")
        lines: list[dict[str, Any]] = []
        functions: dict[int, Any] = {}
        known: set[int] = set()
        for origin, space in spaces.items():
            for candidate in space.sample(self.config.schedules // len(spaces), seed, ATTEMPTS):
                key = program_key(candidate.sch.mod)
                if key not in known:
                    known.add(key)
                    functions[len(lines)] = candidate.sch.mod["main"]
                    lines.append({
                        "task": workload.name, "schedule_id": str(len(lines)), "origin": origin, "seed": seed,
                        "schedule": {"kind": "trace", "trace": plain(candidate.sch.trace.as_json())},
                    })  # fmt: skip
        return lines, functions

    def _build(
        self,
        workload: TvmWorkload,
        numbers: Sequence[int],
        functions: Mapping[int, Any],
        lines: Sequence[dict[str, Any]],
    ) -> None:
        """Build schedules into one library, or, where one of them fails, each half of them into its own; note
        in their lines where they are, or what went wrong."""
        library = f"{workload.name}/schedules_{numbers[0]}_{numbers[-1]}.so"
        names = {number: f"schedule_{number}" for number in numbers}
        try:
            build_library(
                {names[n]: functions[n] for n in numbers}, self.target, self.folder, library,
                tensor_cores=lines[numbers[0]]["origin"] == TENSOR_CORES,
            )  # fmt: skip
        except BuildError as error:
            middle = len(numbers) // 2
            if middle == 0:
                lines[numbers[0]] |= {"status": "build_error", "detail": str(error)}
                return
            for half in (numbers[:middle], numbers[middle:]):
                self._build(workload, half, functions, lines)
        else:
            for number in numbers:
                lines[number] |= {"library": library, "function": names[number]}


def default_schedule(module: Any, target: Any) -> Any:
    """The module with TVM's default schedules for GPUs. They are applied to the module given."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
    with target:
        return dlight.ApplyDefaultSchedule(*rules)(module)


def copy_runtime(folder: Path) -> None:
    """TVM's runtime, without its compiler, and CUDA's if the toolkit is here: a few megabytes."""
    import tvm

    folder.mkdir(parents=True, exist_ok=True)
    for name in LIBRARIES[CUDA]:
        shutil.copy(Path(tvm.__file__).parent / "lib" / name, folder / name)
    cudart = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "lib64" / CUDART
    if cudart.is_file():
        shutil.copy(cudart, folder / CUDART)


def copy_program(folder: Path) -> None:
    """The packages that measuring takes, and the script that starts it."""
    root = Path(gnnperf.__file__).parent
    for name in _PROGRAM:
        if (root / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, folder / "gnnperf" / name, dirs_exist_ok=True, ignore=ignored)
        elif (root / name).is_file():
            (folder / "gnnperf").mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / "gnnperf" / name)
    (folder / START).write_text(_START)
