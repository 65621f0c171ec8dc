"""Operators of torch on the CUDA GPU of this machine: a GPU that nobody trained on becomes one more test.

The table is what `gnnperf predict --table` and `gnnperf eval gpu-operators` read. Operators are fp32, without
TF32; the mean of the 5 fastest of 25 runs between two events counts, launch included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from gnnperf.devices import FoundGpu, find_gpus
from gnnperf.devices.nvidia import times_s
from gnnperf.errors import InputError, MeasureError

RUNS, KEPT = 25, 5
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


def _rows_of(
    torch: Any, device: str, warn: Callable[[str], None], advance: Callable[[], None]
) -> list[dict[str, Any]]:
    """Rows of gpu_operators.parquet; what does not fit the GPU's memory is left out."""
    sizes = dict.fromkeys(("B", "M", "N", "K", "H"))
    said = {"split": "test", "device": device, "dtype": "fp32",
            "torch_version": torch.__version__, "cuda_version": torch.version.cuda}  # fmt: skip
    rows = []
    for columns, allocate in operators(torch):
        try:
            with torch.inference_mode():
                found = times_s(allocate(), torch, RUNS)
        except torch.cuda.OutOfMemoryError:
            warn(f"{columns}: more than the GPU's memory")
            continue
        finally:
            torch.cuda.empty_cache()
            advance()
        rows.append({**said, **sizes, **columns, "latency_ms": 1e3 * fmean(found[:KEPT])})
    return rows


def cuda_torch() -> tuple[Any, FoundGpu]:
    """torch, and the first GPU. Raises MeasureError where there is none, or torch was built without CUDA."""
    gpus, why_none = find_gpus()
    if not gpus:
        raise MeasureError(f"expected a CUDA GPU: {why_none}")
    import torch

    if not torch.cuda.is_available():
        raise MeasureError(f"expected torch built with CUDA, got {torch.__version__}: install such a build")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    return torch, gpus[0]


def operator_count(torch: Any) -> int:
    """Operators that are measured."""
    return sum(1 for _ in operators(torch))


def measure_operators(
    output: Path, warn: Callable[[str], None], advance: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Measure all operators on the first GPU into `gpu_operators.parquet` and `measured.json` (when, with
    which driver, clocks and libraries) of a folder; what was done.

    warn: gets what was left out. advance: called after every operator. Raises MeasureError as `cuda_torch`
    does, InputError where the files cannot be written.
    """
    torch, gpu = cuda_torch()
    rows = _rows_of(torch, gpu.spec.name, warn, advance)
    write_table(rows, output / "gpu_operators.parquet")
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "device": gpu.spec.to_dict(),
        "driver": gpu.driver, "clock_mhz": gpu.clock_mhz, "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }  # fmt: skip
    (output / "measured.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return {"table": output / "gpu_operators.parquet", "device": gpu.spec.name, "operators": len(rows)}


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Rows as Parquet. InputError where it cannot be written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; give another folder") from None
