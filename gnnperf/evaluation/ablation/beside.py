"""The ablations of the other models, from what their own benchmarks printed, as rows of the same table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.release import read_evaluation

Document = Mapping[str, Any]

TENSOR_PROGRAMS: Mapping[str, str] = {
    "gnnperf": "nothing",
    "network": "all but the graph network",
    "without_network": "the graph network: a perceptron on costs and trees on the same",
    "statements": "all but the perceptron on costs of statements",
    "trees": "all but the trees",
    "xgb": "our graphs and costs: MetaSchedule's XGBModel on its own features",
    "random": "everything",
}
"""Row of `gnnperf eval tensor-ranking` -> what it lacks."""
GPU_RUNTIME: Mapping[str, tuple[str, str]] = {
    "ours": ("gpu_without_network_mape", "a network: formulas with fitted constants"),
    "boosted trees": ("trees_mean_heldout_mape", "formulas: trees on flat features"),
    "fitted roofline": ("fitted_roofline_mean_heldout_mape", "all but an efficiency for each family"),
    "roofline": ("roofline_mean_heldout_mape", "everything that is fitted"),
}
"""Row -> figure of `gnnperf eval gpu-operators`, and what it lacks."""
TUNABLE_KERNELS: Mapping[str, tuple[str, str]] = {
    "ours": ("heldout_gpu", "nothing; formulas and a small network of demands, no graph network"),
    "portfolio": ("portfolio", "the network: the greedy portfolio of the other GPUs"),
    "nearest GPU": ("nearest", "the network: the best of the most similar GPU"),
    "boosted trees": ("trees", "the network: trees on flat features"),
    "random": ("random", "everything"),
}
"""Row -> how figures of `gnnperf eval gpu-schedules` begin, and what it lacks."""
FIGURES: Mapping[str, tuple[str, ...]] = {
    "tensor-ranking": (
        "tvm_full_top1", "tvm_network_top1", "tvm_without_network_top1", "tvm_kinds_full_top1_mean",
        "tvm_kinds_network_top1_mean", "tvm_kinds_without_network_top1_mean",
    ),
    "gpu-operators": ("gpu_without_network_mape",),
    "gpu-schedules": tuple(
        f"tunable_{row}_at_{k}" for k in (1, 5) for row in ("with_network", "portfolio")
    ),
}  # fmt: skip
"""What is taken over, by benchmark."""


def read_beside(paths: Sequence[Path]) -> dict[str, Document]:
    """Documents of the benchmarks of FIGURES, by benchmark. Raises InputError: a file is none of them, has
    not the figures, or is the second of its benchmark."""
    found: dict[str, Document] = {}
    for path in paths:
        document = read_evaluation(path, *FIGURES)
        name = document["benchmark"]
        if name in found:
            raise InputError(f"expected one document of {name}, got a second one, {path}; leave one out")
        missing = [figure for figure in FIGURES[name] if figure not in document.get("figures", ())]
        if missing:
            raise InputError(
                f"{path}: expected {', '.join(missing)} among its figures, got none; run "
                f"`gnnperf eval {name} --json` to its end with this version"
            )
        found[name] = document
    return found


def add_beside(result: BenchmarkResult, documents: Mapping[str, Document]) -> BenchmarkResult:
    """The ablation with the figures and rows of the other models, and what these were measured with.

    efficiency: `top1` and `top5` of their benchmarks. mape: mean absolute error of runtimes, in percent.
    """
    figures, rows = dict(result.figures), [*result.rows]
    for name, document in documents.items():
        figures |= {figure: document["figures"][figure] for figure in FIGURES[name]}
        rows += _ROWS[name](document)
    about = {name: document["settings"] for name, document in documents.items()}
    return replace(result, figures=figures, rows=rows, settings={**result.settings, "beside": about})


def _tensor_programs(document: Document) -> Iterator[dict[str, Any]]:
    for row in document["rows"]:
        if row["kind"] == "all" and row["model"] in TENSOR_PROGRAMS:
            for k in (1, 5):
                yield _row(
                    "tensor-programs", row["held_out"], row["model"], TENSOR_PROGRAMS[row["model"]],
                    k=k, efficiency=row[f"top{k}"],
                )  # fmt: skip


def _gpu_runtime(document: Document) -> Iterator[dict[str, Any]]:
    for row, (figure, without) in GPU_RUNTIME.items():
        yield _row("gpu-runtime", "gpu", row, without, mape=document["figures"][figure])


def _tunable_kernels(document: Document) -> Iterator[dict[str, Any]]:
    for row, (prefix, without) in TUNABLE_KERNELS.items():
        for k in (1, 5):
            efficiency = document["figures"][f"{prefix}_top{k}"]
            yield _row("tunable-kernels", "gpu", row, without, k=k, efficiency=efficiency)


def _row(model: str, held_out: str, policy: str, without: str, **values: Any) -> dict[str, Any]:
    return {"model": model, "held_out": held_out, "policy": policy, "without": without, **values}


_ROWS = {
    "tensor-ranking": _tensor_programs,
    "gpu-operators": _gpu_runtime,
    "gpu-schedules": _tunable_kernels,
}
