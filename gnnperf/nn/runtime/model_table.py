"""Graphs of whole models as tables: a row is a node, with the operators that it launches."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnnperf.errors import InputError
from gnnperf.nn.runtime.columns import Columns
from gnnperf.nn.runtime.operator_table import operator_table, read_table

LAUNCHED = ("FwOps", "BwOps", "AccOps")
"""Columns of what a node launches: forwards, backwards, and where gradients are added up."""
GRAPHS = "gpu_models_opgraphs.parquet"
NODE = ("desc", "OpName", *LAUNCHED, "InputShapes", "in_repeated_layer")
COMPILED = "-fusion"
"""Ends the names of models that were compiled."""
_FAMILY = {"Linear": "linear", "BMM": "bmm", "VECsoftmax": "softmax", "VECln": "layernorm"}
_NETWORK = {"ALLREDUCE_ASYNC": "data", "ALLREDUCE": "tensor", "SENDRECV": "pipeline"}
"""Operators that go over a network -> the strategy that runs a model in parallel by them."""
Nodes = list[tuple[list[dict[str, Any]], bool]]
"""Of every node, its operators, as rows of an operator table, and whether it is one of a repeated layer."""


@dataclass(frozen=True)
class ModelGraph:
    """What a model launches in a step: of training, if it launches anything backwards.

    objection: in words, why its runtime is not the sum of its operators'; None where it is.
    """

    nodes: Nodes
    objection: str | None = None

    @property
    def repeats(self) -> bool:
        """Whether a layer of it is one of several."""
        return any(again for _, again in self.nodes)

    def columns(self, layers: float) -> tuple[Columns, NDArray[np.float64]]:
        """Columns of all operators, and how often each runs; layers: of those that are repeated."""
        operators = [{**operator, "device": ""} for listed, _ in self.nodes for operator in listed]
        times = [layers if again else 1.0 for listed, again in self.nodes for _ in listed]
        return operator_table(pa.Table.from_pylist(operators), "graph").columns, np.array(times)


def read_graphs(path: Path) -> dict[str, ModelGraph]:
    """By model (column desc), its graph. The other columns of a Parquet file are OpName, FwOps, BwOps, AccOps
    and InputShapes, texts of Python lists, and in_repeated_layer. Raises InputError."""
    table = read_table(path)
    if missing := [name for name in NODE if name not in table.column_names]:
        raise InputError(f"{path}: expected a column {missing[0]!r}; needed: {', '.join(NODE)}")
    graphs: dict[str, Nodes] = {}
    objections: dict[str, str] = {}
    for number, node in enumerate(table.select(NODE).to_pylist()):
        if node["OpName"] == "getitem":  # views: nothing is launched
            continue
        if not isinstance(node["desc"], str):
            raise InputError(
                f"{path}: row {number}: expected the name of a model in desc, got {node['desc']!r}"
            )
        try:
            inputs = _literal(node["InputShapes"])
            listed = [op for column in LAUNCHED for op in _literal(node[column])]
            if (objection := _objection(listed)) is not None:
                objections.setdefault(node["desc"], objection)
            listed = _fused(listed) if node["OpName"] == "fused" else listed
            operators = [row for op in listed if (row := _operator(op, inputs)) is not None]
        except (AttributeError, ValueError, SyntaxError, TypeError, IndexError) as error:
            raise InputError(
                f"{path}: row {number}: expected operators as [['Linear', (512, 1024, 768)]]: {error}"
            ) from None
        if operators:
            graphs.setdefault(node["desc"], []).append((operators, bool(node["in_repeated_layer"])))
    graphs = {name: _merged(graph) if name.endswith(COMPILED) else graph for name, graph in graphs.items()}
    return {name: ModelGraph(nodes, objections.get(name)) for name, nodes in graphs.items()}


def models_of(path: Path, gpus: Sequence[str]) -> tuple[pa.Table, Path]:
    """Models to predict, a row each (columns desc, device and num_layer), and the file with their graphs.

    path: such a table, with gpu_models_opgraphs.parquet beside it; or the graphs themselves, with num_layer
    as one of their columns, for each of `gpus`. Raises InputError.
    """
    table = read_table(path)
    are_graphs = "FwOps" in table.column_names
    if are_graphs == (not gpus):
        what = (
            "graphs take their GPUs from --gpu"
            if are_graphs
            else "its column device names the GPUs, not --gpu"
        )
        raise InputError(f"{path}: {what}; see gnnperf predict --help")
    for name in ("desc", "num_layer", *(() if are_graphs else ("device",))):
        if name not in table.column_names:
            raise InputError(
                f"{path}: expected a column {name!r} (desc: a model's name; num_layer: how often its "
                "repeated layer runs; device: a GPU); add it"
            )
    if not len(table):
        raise InputError(f"{path}: expected models, got a table without rows; name another")
    for n in table["num_layer"].to_pylist():
        if n is not None and not (isinstance(n, int | float) and n >= 0):
            raise InputError(f"{path}: num_layer: expected numbers of at least 0, got {n!r}")
    if not are_graphs:
        return table, path.parent / GRAPHS
    layers = {row["desc"]: row["num_layer"] for row in table.select(["desc", "num_layer"]).to_pylist()}
    rows = [{"desc": d, "device": gpu, "num_layer": n} for d, n in layers.items() for gpu in gpus]
    return pa.Table.from_pylist(rows), path


@functools.lru_cache(maxsize=4096)
def _literal(text: str) -> Any:
    return ast.literal_eval(text)


def _objection(listed: Sequence[Any]) -> str | None:
    """Why operators are not a model on one GPU of known operators; None where they are."""
    for kind, *_ in listed:
        if kind in _NETWORK:
            return (
                f"runs on several GPUs ({_NETWORK[kind]} parallel, {kind}); give the graph of one GPU's share"
            )
        if kind not in _FAMILY and kind != "MEM" and not kind.startswith("VEC"):
            return f"has an operator that is not known: {kind}"
    return None


def _merged(graph: Nodes) -> Nodes:
    """What a compiler makes of a chain: pointwise operators run inside of the softmax or normalisation that
    comes right after them, and goes over the same elements."""
    kept: Nodes = []
    for operators, again in graph:
        size = operators[0]["B"] and operators[0]["H"] and operators[0]["B"] * operators[0]["H"]
        if operators[0]["op_family"] in ("softmax", "layernorm"):
            while kept and kept[-1][0][0]["op_family"] == "elementwise":
                (before, *_), _ = kept[-1]
                if before["B"] * before["H"] != size:
                    break
                kept.pop()
        kept.append((operators, again))
    return kept


def _fused(listed: list[Any]) -> list[Any]:
    """Of operators that run as one kernel, the one that reads and writes most stands for all."""
    sizes = [(math.prod(op[1]) if op[0] != "MEM" else math.prod(op[1][-1]), i) for i, op in enumerate(listed)]
    reducing = [op for op in listed if op[0] in ("VECsoftmax", "VECln")]
    return reducing[:1] or ([listed[max(sizes)[1]]] if sizes else [])


def _operator(op: Any, inputs: Sequence[tuple[int, ...]]) -> dict[str, Any] | None:
    """One row of an operator table; None for what moves nothing or goes over a network. An elementwise one of
    which a single input is as large as the result takes a number, or a vector, for the second."""
    kind, shape = op[0], op[1]
    row: dict[str, Any] = dict.fromkeys("BMNKH")
    if kind == "Linear":
        m, k, n = shape
        return {**row, "op_family": "linear", "op": "linear", "M": m, "N": n, "K": k}
    if kind == "BMM":
        b, m, k, n = shape
        return {**row, "op_family": "bmm", "op": "bmm", "B": b, "M": m, "N": n, "K": k}
    if kind in _FAMILY:
        return {**row, "op_family": _FAMILY[kind], "op": kind[3:], "B": shape[0], "H": shape[1]}
    if kind.startswith("VEC"):
        single = sum(math.prod(i) == math.prod(shape) for i in inputs) == 1
        name = f"{kind[3:]}u" if single else kind[3:]
        return {**row, "op_family": "elementwise", "op": name, "B": shape[0], "H": shape[1]}
    if kind == "MEM":
        elements = math.prod(shape[-1])
        return (
            {**row, "op_family": "elementwise", "op": "copy", "B": 1, "H": elements} if elements > 1 else None
        )
    return None
