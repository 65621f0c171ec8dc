"""The search over the schedules of one workload: random ones, then what MetaSchedule finds.

MetaSchedule's evolutionary search with its XGBoost cost model, driven a round at a time, with measurements
by `Bench`. It may be stopped after any round: a later one starts from what was measured.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.tuning.tensor.bench import Bench
from gnnperf.tuning.tensor.outcome import Outcome
from gnnperf.tuning.tensor.spaces import Space

Lines = Sequence[Mapping[str, Any]]

_POPULATION = dict(population_size=64, init_measured_ratio=0.2, init_min_unmeasured=32, genetic_num_iters=2)
"""An eighth of MetaSchedule's: most of a search with cheap measurements is evolution."""

_WARMUP = 24  # measured schedules before the cost model has a say
_FRUITLESS = 3  # rounds without a new schedule: the space is exhausted


class Tuner:
    """Measures schedules of a workload, some of which may be known already.

    known: lines of the log about this workload. keep: gets the new lines, a round at a time.

    Attributes:
        exhausted: the search found nothing new. seconds: wall time by what it was spent on.
    """

    def __init__(
        self,
        workload: Workload,
        module: Any,
        target: Any,
        bench: Bench,
        known: Lines,
        keep: Callable[[list[dict[str, Any]]], None],
        seed: int = 0,
    ) -> None:
        from tvm.s_tir import meta_schedule as ms

        self.workload, self.bench, self.keep = workload, bench, keep
        self.space = Space(workload, module, target)
        self.exhausted = False
        self.seconds = {"sample": 0.0, "search": 0.0, "measure": 0.0, "learn": 0.0}
        self._target = target
        self._seed = zlib.crc32(f"{seed} {workload.name} {len(known)}".encode()) & 0x3FFFFFFF
        self._known: dict[int, Outcome] = {}
        self._counts = {"random": 0, "search": 0}
        self._best_s = float("inf")
        self._model = ms.cost_model.XGBModel(num_warmup_samples=_WARMUP, num_tuning_cores=1)
        self._database = ms.database.MemoryDatabase()
        self._entry = self._database.commit_workload(module)
        self._context = ms.TuneContext(
            mod=module,
            target=target,
            space_generator=self.space.generator,
            search_strategy=ms.search_strategy.EvolutionarySearch(**_POPULATION),
            num_threads=1,
            rand_state=self._seed + 1,
        )
        self._restore(known)

    def run(self, total: int, random_share: float, batch: int) -> None:
        """Measure until there are `total` schedules, or the space is exhausted."""
        while (missing := round(random_share * total) - self._counts["random"]) > 0:
            started = time.monotonic()
            count = sum(self._counts.values())
            found = self._new(self.space.sample(min(batch, missing), self._seed + 1000 * count))
            self.seconds["sample"] += time.monotonic() - started
            if not found:
                break
            self._measure(found, "random")
        self._context.pre_tuning(2 * total, batch, self.space.designs, self._database, self._model)
        fruitless = 0
        while (missing := total - sum(self._counts.values())) > 0 and fruitless < _FRUITLESS:
            started = time.monotonic()
            proposed = self._context.generate_measure_candidates()
            found = self._new(proposed or ())[:missing]
            self.seconds["search"] += time.monotonic() - started
            if proposed is None:
                break
            fruitless = 0 if found else fruitless + 1
            self._measure(found, "search")
            self._context.notify_runner_results(
                proposed, [_result(self._known.get(_key(c))) for c in proposed]
            )
        self._context.post_tuning()
        self.exhausted = sum(self._counts.values()) < total

    def _new(self, candidates: Any) -> list[Any]:
        """Those that were not measured, each once."""
        found: dict[int, Any] = {}
        for candidate in candidates:
            found.setdefault(_key(candidate), candidate)
        return [candidate for key, candidate in found.items() if key not in self._known]

    def _measure(self, candidates: Sequence[Any], origin: str) -> None:
        if not candidates:
            return
        started = time.monotonic()
        outcomes = self.bench.measure([candidate.sch.mod for candidate in candidates], self._best_s)
        self.seconds["measure"] += time.monotonic() - started
        lines = []
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            line = {"workload": self.workload.name, "n": sum(self._counts.values()), "origin": origin}
            line |= {"seed": self._seed, **outcome.to_dict(), "trace": plain(candidate.sch.trace.as_json())}
            lines.append(line)
            self._counts[origin] += 1
        self.keep(lines)
        self._learn(candidates, outcomes)

    def _learn(self, candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
        """Tell the database and the cost model."""
        from tvm.s_tir.meta_schedule.database import TuningRecord

        started = time.monotonic()
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            self._known[_key(candidate)] = outcome
            if outcome.runtime_s is not None:
                self._best_s = min(self._best_s, outcome.runtime_s)
            record = TuningRecord(
                candidate.sch.trace, self._entry, _run_s(outcome), self._target, self.space.arguments
            )
            self._database.commit_tuning_record(record)
        self._model.update(self._context, list(candidates), [_result(outcome) for outcome in outcomes])
        self.seconds["learn"] += time.monotonic() - started

    def _restore(self, known: Lines) -> None:
        candidates = [self.space.replay(line["trace"]) for line in known]
        for line in known:
            self._counts[line["origin"]] += 1
        if known:
            self._learn(candidates, [Outcome.from_dict(line) for line in known])


def plain(value: Any) -> Any:
    """TVM's arrays, maps and strings as lists, dictionaries and strings, ready for JSON."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return value if isinstance(value, bool | int | float | None) else _number(value)


def _number(value: Any) -> int | float:
    """An integer or a float that TVM wrapped."""
    inner = value.value
    assert isinstance(inner, int | float), type(inner)
    return inner


def _key(candidate: Any) -> int:
    """Names the scheduled function: schedules that come to the same code are one."""
    import tvm_ffi

    return int(tvm_ffi.structural_hash(candidate.sch.mod))


def _run_s(outcome: Outcome) -> list[float]:
    return [1e10] if outcome.runtime_s is None else [outcome.runtime_s]  # MetaSchedule's mark of a failure


def _result(outcome: Outcome | None) -> Any:
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    if outcome is None or outcome.runtime_s is None:
        return RunnerResult(None, "failed" if outcome is None else outcome.detail or outcome.status)
    return RunnerResult([outcome.runtime_s], None)
