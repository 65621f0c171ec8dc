"""Measure operators and two tunable kernels on the CUDA GPU of this machine.

python scripts/measure_gpu.py -o DIR [--seconds 600] [--configurations 300]

Writes gpu_operators.parquet and tunable_kernels.parquet into DIR with the columns that `gnnperf predict
--table`, `gnnperf eval gpu-operators` and `gnnperf eval gpu-schedules` read, so that a GPU that nobody
trained on becomes one more test, and measured.json: when, with which driver, clocks, power limit, libraries.

Operators are fp32 of torch, without TF32; the mean of the 5 fastest of 25 runs between two events counts,
launch included. The tunable kernels are scripts/cuda/*.cu, compiled by torch's NVRTC for every configuration;
a result that differs from torch's is kept as invalid. It needs a torch that was built with CUDA. On machines
without a GPU only the kernels' results are tested (compiled for the CPU), not their times.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gnnperf.devices import find_gpus
from gnnperf.errors import GnnperfError, InputError
from gnnperf.frontends.gpu_kernels import configurations_of, find_description

SOURCES = Path(__file__).with_name("cuda")
RUNS, KEPT = 25, 5
KERNELS = ("gemm", "convolution2d")
SPACE = "measure_gpu"
TOLERANCE = 1e-3
"""Of a result, relative to the largest."""
PRODUCTS = [(b, m, n, k) for b in (8, 48, 192) for m, n, k in (
    (128, 128, 64), (512, 512, 64), (512, 64, 512), (1024, 1024, 128), (2048, 2048, 64), (256, 1024, 1024),
    (384, 384, 96))]  # fmt: skip
LINEAR = [(m, n, k) for m in (128, 512, 2048, 8192) for n, k in (
    (768, 768), (3072, 768), (1024, 4096), (4096, 4096), (5120, 1280), (50272, 1024))]  # fmt: skip
ROWS = list(product((2048, 16384, 131072), (512, 1024, 2560, 4096)))
POINTWISE = list(product((4096, 32768, 262144), (1024, 4096)))


def operators(torch: Any) -> Iterator[tuple[dict[str, Any], Callable[[], Callable[[], Any]]]]:
    """Columns of every operator of the grid, and what allocates its tensors and returns the run."""

    def ones(*shape: int) -> Any:
        return torch.rand(shape, device="cuda") + 0.5

    def bound(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Callable[[], Any]]:
        def allocate() -> Callable[[], Any]:
            tensors = [ones(*shape) for shape in shapes]
            return lambda: call(*tensors)

        return allocate

    functional = torch.nn.functional
    for b, m, n, k in PRODUCTS:
        yield (
            {"op_family": "bmm", "op": "bmm", "B": b, "M": m, "N": n, "K": k},
            bound(torch.bmm, (b, m, k), (b, k, n)),
        )
    for m, n, k in LINEAR:
        yield (
            {"op_family": "linear", "op": "linear", "B": 1, "M": m, "N": n, "K": k},
            bound(functional.linear, (m, k), (n, k), (n,)),
        )
    for b, h in ROWS:
        yield (
            {"op_family": "softmax", "op": "softmax", "B": b, "H": h},
            bound(lambda x: torch.softmax(x, -1), (b, h)),
        )
        yield (
            {"op_family": "layernorm", "op": "ln", "B": b, "H": h},
            bound(lambda x, w, c: functional.layer_norm(x, w.shape, w, c), (b, h), (h,), (h,)),
        )
    two = {"add": torch.add, "mul": torch.mul, "div": torch.div, "pow": torch.pow}
    one = {"relu": torch.relu, "tanh": torch.tanh, "gelu": functional.gelu}
    for b, h in POINTWISE:
        size = (b, h)
        for name, call in two.items():
            yield _pointwise(name, b, h), bound(call, size, size)
            yield _pointwise(f"{name}u", b, h), bound(lambda x, call=call: call(x, 1.5), size)
        for name, call in one.items():
            yield _pointwise(name, b, h), bound(call, size)


def _pointwise(name: str, b: int, h: int) -> dict[str, Any]:
    return {"op_family": "elementwise", "op": name, "B": b, "H": h}


def times_ms(run: Callable[[], Any], torch: Any) -> np.ndarray:
    """Milliseconds of RUNS runs between two events each, after three to warm up; sorted."""
    for _ in range(3):
        run()
    found = []
    for _ in range(RUNS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end))
    return np.sort(np.array(found))


def measure_operators(torch: Any, device: str) -> list[dict[str, Any]]:
    """Rows of gpu_operators.parquet; what does not fit the GPU's memory is left out."""
    sizes = dict.fromkeys(("B", "M", "N", "K", "H"))
    said = {"split": "test", "device": device, "dtype": "fp32",
            "torch_version": torch.__version__, "cuda_version": torch.version.cuda}  # fmt: skip
    rows = []
    for columns, allocate in operators(torch):
        try:
            with torch.inference_mode():
                found = times_ms(allocate(), torch)
        except torch.cuda.OutOfMemoryError:
            print(f"left out: {columns}: more than the GPU's memory", file=sys.stderr)
            continue
        finally:
            torch.cuda.empty_cache()
        rows.append({**said, **sizes, **columns, "latency_ms": float(found[:KEPT].mean())})
    return rows


def options(values: Mapping[str, Any]) -> list[str]:
    """Macros for a compiler."""
    return [f"-D{name}={value}" for name, value in values.items()]


def source_of(kernel: str, macros: Mapping[str, str]) -> str:
    """The kernel in CUDA, with macros that are too long for options."""
    defined = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    return defined + (SOURCES / f"{kernel}.cu").read_text(encoding="utf-8")


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


def measure_kernel(torch: Any, kernel: str, device: str, count: int, until: float) -> list[dict[str, Any]]:
    """Rows of tunable_kernels.parquet: `count` configurations drawn at random, as far as the time allows."""
    description = find_description(kernel)
    sizes = dict(description.sizes)
    arguments, out, expected, macros = data_of(kernel, sizes, torch, "cuda")
    largest = float(expected.abs().max())
    space = configurations_of(description)
    chosen = np.random.default_rng(0).permutation(len(space))[:count]
    source = source_of(kernel, macros)
    rows = []
    for configuration in (space[i] for i in chosen):
        if time.monotonic() > until:
            break
        row = {"kernel": kernel, "space": f"{SPACE}_{kernel}", "device": device,
               "problem_size": json.dumps(list(sizes.values())), "params": json.dumps(configuration),
               "time_ms": None, "time_std_ms": None, "n_rep": 0, "valid": False, "error": None,
               "source": "scripts/measure_gpu.py"}  # fmt: skip
        rows.append(row)
        values = {**sizes, **configuration}
        grid, block = launch_of(kernel, values)
        out.fill_(float("nan"))
        try:
            run = torch.cuda._compile_kernel(source, kernel, nvcc_options=options(values))
            run(grid=grid, block=block, args=arguments)
            torch.cuda.synchronize()
        except RuntimeError as error:
            row["error"] = str(error).splitlines()[0][:200]
            continue
        if not bool(((out - expected).abs() <= TOLERANCE * largest).all()):
            row["error"] = "wrong_result"
            continue
        found = times_ms(lambda run=run, g=grid, b=block: run(grid=g, block=b, args=arguments), torch)
        row.update(time_ms=float(found.mean()), time_std_ms=float(found.std()), n_rep=RUNS, valid=True)
    return rows


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """Rows as Parquet. InputError where it cannot be written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(pa.Table.from_pylist(rows), path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def measure(output: Path, seconds: float, count: int) -> str:
    """Measure everything on the first GPU; returns what was done. Raises InputError where there is none."""
    import torch

    gpus, why_none = find_gpus()
    if not gpus:
        raise InputError(f"expected a CUDA GPU: {why_none}")
    if not torch.cuda.is_available():
        raise InputError(f"expected torch built with CUDA, got {torch.__version__}: install such a build")
    output.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    gpu, started = gpus[0], time.monotonic()
    rows = measure_operators(torch, gpu.spec.name)
    write(rows, output / "gpu_operators.parquet")
    tuned: list[dict[str, Any]] = []
    for i, kernel in enumerate(KERNELS, start=1):
        until = started + seconds * i / len(KERNELS)
        tuned += measure_kernel(torch, kernel, gpu.spec.name, count, until)
        write(tuned, output / "tunable_kernels.parquet")
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "device": gpu.spec.to_dict(),
        "driver": gpu.driver, "clock_mhz": gpu.clock_mhz, "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }  # fmt: skip
    (output / "measured.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    good = sum(row["valid"] for row in tuned)
    return f"{gpu.spec.name}: {len(rows)} operators, {good} of {len(tuned)} configurations into {output}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=600, help="for all of it (default 600)")
    parser.add_argument("--configurations", type=int, default=300, help="of each kernel (default 300)")
    arguments = parser.parse_args()
    try:
        print(measure(arguments.output, arguments.seconds, arguments.configurations))
    except GnnperfError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
