"""A cost model for MetaSchedule that has seen other workloads before it sees the first of this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from gnnperf.devices import describe_host
from gnnperf.errors import InputError, UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.graph import EncodedGraph, encode
from gnnperf.measure.confine import available_threads
from gnnperf.measure.workers import spread
from gnnperf.nn import load_checkpoint
from gnnperf.nn.traces import FEATURES, TensorBundle
from gnnperf.schedules.traces import program_key
from gnnperf.shipped import shipped_tensor_bundle

import_tvm()

from tvm.ir.utils import derived_object  # noqa: E402
from tvm.s_tir.meta_schedule.cost_model import PyCostModel  # noqa: E402

FAILED = 10.0
"""Slower than the best, in doublings, that a schedule which failed is taken to be."""
PRIOR = 0.5
"""Deviation, in doublings, of what the released model gets wrong about a schedule, where nothing is known."""
NOISE = 0.15
"""Part of it that no other schedule shares."""
MEMORY = 512
"""Measured schedules of a workload that are learned from: the latest."""


@derived_object
class GNNCostModel(PyCostModel):  # type: ignore[misc]
    """The released cost model of tensor programs, corrected by what this workload's measurements say.

    The correction is a Gaussian process over the numbers of a schedule (`gnnperf.nn.traces.numbers`), one for
    each workload, whose prior mean is the model: schedules like those that were faster than expected rise.

    Args:
        checkpoint: a folder of `tensor-programs`, or what was loaded from one; None for the released one.
            InputError where it is none.

    Example:
        ms.tune_tir(mod, target, work_dir, max_trials_global=64, cost_model=GNNCostModel())
    """

    def __init__(self, checkpoint: Path | TensorBundle | None = None) -> None:
        super().__init__()
        if isinstance(checkpoint, TensorBundle):
            bundle = checkpoint
        else:
            bundle = load_checkpoint(checkpoint or shipped_tensor_bundle(), TensorBundle)
        self.bundle = replace(bundle, vectors=describe_host().vectors)
        self._described: dict[int, tuple[float, NDArray[np.float32]] | None] = {}
        self._known: dict[str, _Measured] = {}

    def predict(self, context: Any, candidates: Sequence[Any]) -> Float64[np.ndarray, " n"]:
        """log2(1 / runtime) of n candidates, up to a constant of the workload: higher is better."""
        scores, features = self._judge(candidates)
        known = self._known.get(_workload(context))
        return scores if known is None else scores + known.correction(features)

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Learn from measurements. A failure is learned from as very slow."""
        if not candidates:  # TVM leaves out what was not built
            return
        scores, features = self._judge(candidates)
        runtimes = [min(map(float, r.run_secs)) if r.run_secs else np.inf for r in results]
        known = self._known.setdefault(_workload(context), _Measured())
        known.rows.append((scores, features, np.array(runtimes)))

    def save(self, path: str) -> None:
        """What was learned from measurements; the released model itself is not written."""
        arrays = {
            f"{i}.{k}": v for i, known in enumerate(self._known.values()) for k, v in known.arrays().items()
        }
        with Path(path).open("wb") as file:
            np.savez_compressed(file, workloads=np.array(list(self._known), dtype=str), **arrays)

    def load(self, path: str) -> None:
        """What `save` wrote. Raises InputError (RuntimeError, through TVM) where the file is not that."""
        try:
            with np.load(path) as arrays:
                names = [str(name) for name in arrays["workloads"]]
                self._known = {
                    name: _Measured([tuple(arrays[f"{i}.{k}"] for k in ("scores", "features", "runtimes_s"))])
                    for i, name in enumerate(names)
                }
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"expected what GNNCostModel.save wrote in {path}: {error}") from None

    def _judge(self, candidates: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores in doublings, f64[n], and features, f64[n, f]. What has no graph has the lowest score."""
        keys = [program_key(candidate.sch.mod) for candidate in candidates]
        modules = {key: candidate.sch.mod for key, candidate in zip(keys, candidates, strict=True)}
        self._describe({key: mod for key, mod in modules.items() if key not in self._described})
        found = [self._described[key] for key in keys]
        worst = min((one[0] for one in found if one is not None), default=FAILED) - FAILED
        unknown = worst, np.zeros(FEATURES, np.float32)
        scores, features = zip(*(unknown if one is None else one for one in found), strict=True)
        return np.array(scores), np.array(features, np.float64)

    def _describe(self, modules: Mapping[int, Any]) -> None:
        """Score modules and keep that, by structural hash: the search asks for the same ones many times."""
        found = encoded_graphs(modules)
        self._described |= dict.fromkeys(found)
        graphs = {key: graph for key, graph in found.items() if graph is not None}
        scores, _, features = self.bundle.describe([*graphs.values()])
        for key, score, row in zip(graphs, scores.tolist(), features, strict=True):
            self._described[key] = score / np.log(2.0), row


def _workload(context: Any) -> str:
    return f"{program_key(context.mod):016x}"


@dataclass
class _Measured:
    """Measured schedules of one workload. rows: scores f64[n], features f64[n, f], runtimes_s f64[n], of
    several at a time."""

    rows: list[tuple[NDArray[np.float64], ...]] = field(default_factory=list)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        scores, features, runtimes_s = (
            np.concatenate(part)[-MEMORY:] for part in zip(*self.rows, strict=True)
        )
        return {"scores": scores, "features": features, "runtimes_s": runtimes_s}

    def correction(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Posterior mean of what the model gets wrong, in doublings, f64[m] (Rasmussen and Williams 2006,
        equation 2.25)."""
        known = self.arrays()
        good = np.isfinite(known["runtimes_s"])
        if not good.any():
            return np.zeros(len(features))
        target = -np.log2(np.where(good, known["runtimes_s"], 1.0))
        target = np.where(good, target, target[good].min() - FAILED)
        wrong = target - known["scores"]
        wrong = np.clip(wrong - np.median(wrong[good]), -4.0, 4.0)
        both = np.concatenate([known["features"], features])
        spread = both.std(0)
        both = (both - both.mean(0)) / np.where(spread > 0, spread, 1.0)
        n = len(wrong)
        distance = ((both[:, None] - both[None, :n]) ** 2).mean(-1)
        kernel = PRIOR**2 * np.exp(-distance)
        weights = np.linalg.solve(kernel[:n] + NOISE**2 * np.eye(n), wrong)
        found: NDArray[np.float64] = kernel[n:] @ weights
        return found


Graphs = dict[int, EncodedGraph | None]
"""By a module's key; None for one that has no graph."""

SHARE = 32
"""Modules for each process, at least, so that a fork costs little beside what it does."""


def encoded_graphs(modules: Mapping[int, Any]) -> Graphs:
    """Graphs of scheduled IRModules, by their keys and in their order. Where there are many, several
    processes describe them; what one leaves undone when something kills it, this one does."""
    jobs = [partial(_graph, module) for module in modules.values()]
    found = spread(jobs, min(available_threads(), len(jobs) // SHARE))
    return {key: found[n] if n in found else jobs[n]() for n, key in enumerate(modules)}


def _graph(module: Any) -> EncodedGraph | None:
    try:
        return encode(scheduled_graph(module))
    except UnsupportedConstruct:
        return None
