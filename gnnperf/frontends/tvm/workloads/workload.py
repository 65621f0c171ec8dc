"""Workloads as data: an operator kind with its parameters, read from YAML."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from gnnperf.errors import InputError, first_line
from gnnperf.frontends.tvm.workloads import convolutions, int8, pointwise, products, rows

KINDS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        builder.__name__: builder
        for builder in (
            products.matmul,
            products.batch_matmul,
            products.dense,
            products.attention_scores,
            products.attention_values,
            convolutions.conv1d,
            convolutions.conv2d,
            convolutions.conv2d_transpose,
            convolutions.conv3d,
            convolutions.depthwise_conv2d,
            convolutions.group_conv2d,
            int8.conv2d_int8,
            int8.matmul_int8,
            pointwise.elementwise,
            pointwise.transpose,
            rows.global_pool,
            rows.group_norm,
            rows.layer_norm,
            rows.pool2d,
            rows.reduce,
            rows.rms_norm,
            rows.softmax,
        )
    }
)
"""Kind -> a function of its parameters that returns a `tvm.tirx.PrimFunc`, not scheduled."""

SPLITS = ("training", "held_out")


@dataclass(frozen=True)
class TvmWorkload:
    """An operator of one kind at one size. split: whether models may learn from its measurements."""

    kind: str
    params: Mapping[str, Any]
    split: str = "training"

    @property
    def name(self) -> str:
        """Kind and parameters, as a word: names the workload in corpora."""
        return "-".join([self.kind, *(f"{key}_{_word(value)}" for key, value in self.params.items())])

    def build(self) -> Any:
        """An IRModule with the one function `main`, not scheduled. Raises InputError where the parameters
        make none."""
        import tvm

        try:
            function = KINDS[self.kind](**self.params)
            return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        except Exception as error:  # TVM raises anything
            raise InputError(
                f"expected parameters that make a function, got {type(error).__name__}: {first_line(error)}; "
                "change them in the configuration"
            ) from error


def read_workloads(path: Path) -> tuple[dict[str, Any], tuple[TvmWorkload, ...]]:
    """A corpus configuration: its settings, and what its list `workloads` holds.

    Each item is a mapping with `kind`, its parameters, and `split: held_out` where models must not learn
    from it. Raises InputError.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"cannot read the configuration {path}: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("workloads"), list):
        raise InputError(f"{path}: expected a mapping with a list `workloads`, got {type(raw).__name__}")
    found = tuple(_workload(f"{path}: workload {n}", item) for n, item in enumerate(raw["workloads"], 1))
    names = [workload.name for workload in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{path}: {twice} is listed twice; remove one")
    return {key: value for key, value in raw.items() if key != "workloads"}, found


def _workload(where: str, item: Any) -> TvmWorkload:
    kind = item.get("kind") if isinstance(item, dict) else item
    if not isinstance(item, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"{where}: expected a kind, one of {', '.join(sorted(KINDS))}; got {kind!r}")
    params = {key: value for key, value in item.items() if key not in ("kind", "split")}
    split = item.get("split", "training")
    if split not in SPLITS:
        raise InputError(f"{where}: split: expected one of {', '.join(SPLITS)}, got {split!r}")
    signature = inspect.signature(KINDS[kind])
    try:
        signature.bind(**params)
    except TypeError as error:
        raise InputError(f"{where}: {kind}: {error}; expected {', '.join(signature.parameters)}") from None
    return TvmWorkload(kind, params, split)


def _word(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
