"""The transfer loop on a real kernel, with candidates that do everything a candidate must not do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from retrieval.records import DEVICE, make_nest, make_record, recipe

from gnnperf.backends.cpp import executor as cpp
from gnnperf.backends.cpp import trials
from gnnperf.backends.cpp.trials import NestBench, source_of
from gnnperf.devices import AVX512, VectorUnit, describe_host
from gnnperf.errors import BuildError, NotApplicable
from gnnperf.frontends.dace import DaceKernel, load_kernel, loader
from gnnperf.measure import Compiler, Measurement, Runner, Source, Timing
from gnnperf.nests import LoopNest
from gnnperf.nn import Bundle
from gnnperf.retrieval import (
    Options,
    Pipeline,
    RecipeCandidate,
    RetrievalReport,
    pipeline,
    proposers,
    rank,
)
from gnnperf.retrieval.confidence import FEATURES, Confidence, Rates
from gnnperf.retrieval.memory import Memory
from gnnperf.retrieval.pipeline import why_all_failed
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import Predict
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour, Store

KERNEL = """
import dace

N = dace.symbol("N")

@dace.program
def product(A: dace.float64[N, N], B: dace.float64[N, N], C: dace.float64[N, N]):
    for i, j, k in dace.map[0:N, 0:N, 0:N]:
        C[i, j] += A[i, k] * B[k, j]
"""

FAULTS = {
    "segfault": "*(volatile int*)16 = 1;",
    "endless": "for (volatile int go = 1; go;) {}",
    "wrong": "return;",
    "hungry": "for (;;) *(volatile char*)new char[1 << 24] = 1;",
    "no code": "this is no C++;",
    "exits": "__builtin_exit(0);",
}
"""What is put at the start of a candidate's function."""

STATUS = {
    "segfault": ("run_error", "SIGSEGV"),
    "endless": ("timeout", "took longer than"),
    "wrong": ("wrong_result", "elements differ"),
    "hungry": ("run_error", "bad_alloc"),
    "no code": ("build_error", "error:"),
    "exits": ("run_error", "exit code 0"),
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> DaceKernel:
    path = tmp_path_factory.mktemp("kernel") / "kernel.py"
    path.write_text(KERNEL)
    return load_kernel(f"{path}:product", {"N": 100})


FAST = Recipe(order="row", register_p=4)
"""Ten times faster than what DaCe makes of the sum, an atomic addition for each term."""


@dataclass
class Transfer:
    """One run of the pipeline, given what compiles and runs."""

    kernel: DaceKernel
    proposer: proposers.RecipeProposer
    options: Options
    memory: Memory
    confidence: Confidence | None

    def run(self, compiler: Compiler, runner: Runner) -> tuple[RetrievalReport, Any, list[Query]]:
        """(report, the tuned program or None, the queries); what was measured is remembered."""
        with closing(cpp.CppExecutor(self.kernel, None, compiler, runner)) as executor:
            made = Pipeline(
                self.kernel, self.proposer.bundle, self.proposer, executor, self.proposer.device,
                self.options, self.confidence,
            )  # fmt: skip
            report, queries = made.run()
            self.memory.remember(queries, executor.provenance)
            return report, executor.tuned, queries


@pytest.fixture
def make_transfer(
    kernel: DaceKernel, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Transfer]:
    """`make_transfer(schedules, ...)`: of a kernel whose one nest is known to like them; they are tried in
    that order."""

    def make(
        schedules: list[Recipe],
        confidence: Confidence | None = None,
        **options: Any,
    ) -> Transfer:
        graph = kernel.units[0].graph
        device = replace(describe_host(), kind="cpu", arch="x86_64", isa="avx512")
        assert device.fingerprint == DEVICE
        store = Store.open(tmp_path / "store", create=True)
        if schedules:
            nest = replace(make_nest("known"), digest=graph.digest)
            store.add_nest(nest, graph.to_json(), bundle.embed([graph])[0], bundle.encoder_id)
            speedups = range(len(schedules) + 1, 1, -1)
            records = [make_record("known", s, float(x)) for s, x in zip(schedules, speedups, strict=True)]
            store.add_records([replace(record, nest_digest=graph.digest) for record in records])

        def in_that_order(neighbours: list[Neighbour], limit: int, predict: Predict) -> list[RecipeCandidate]:
            ranked = rank(neighbours, limit, predict)
            return sorted(ranked, key=lambda candidate: schedules.index(candidate.schedule))

        monkeypatch.setattr(proposers, "rank", in_that_order)
        monkeypatch.setattr(proposers, "library_recipes", lambda _: [])
        chosen = Options(**{"k": len(schedules) or 3, **options})
        found = proposers.RecipeProposer(bundle, [store], device)
        own = Store.open(tmp_path / "own", create=True)
        return Transfer(kernel, found, chosen, Memory(own, kernel.name, "dace", bundle, device), confidence)

    return make


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[Recipe, str]], None]:
    """`spoil({recipe: code})`: the functions of these recipes begin with that code."""

    def patch(faults: dict[Recipe, str]) -> None:
        def spoiled(schedule: Recipe, nest: LoopNest) -> Source:
            source = source_of(schedule, nest)
            if schedule not in faults:
                return source
            start = re.compile(rf" {source.symbol}\([^)]*\)\s*{{")
            text, count = start.subn(lambda m: f"{m.group()} {faults[schedule]}", source.text)
            assert count == 1
            # A symbol of its own, as code of its own would have.
            name = f"{source.symbol}_{list(faults).index(schedule)}"
            return replace(source, text=text.replace(f" {source.symbol}(", f" {name}("), symbol=name)

        monkeypatch.setattr(trials, "source_of", spoiled)

    return patch


def only_nest(answer: RetrievalReport) -> Any:
    (nest,) = answer.nests
    return nest


def statuses(queries: list[Query]) -> list[str]:
    (query,) = queries
    return [measurement.status for _, measurement in query.tried]


def test_candidates_that_fail_cost_themselves_and_the_rest_go_on(
    make_transfer: Callable[..., Transfer],
    spoil: Callable[[dict[Recipe, str]], None],
    compiler: Compiler,
    runner: Runner,
    bundle: Bundle,
    tmp_path: Path,
) -> None:
    faults = {recipe(i): name for i, name in enumerate(FAULTS, start=1)}
    spoil({schedule: FAULTS[name] for schedule, name in faults.items()})
    one = make_transfer([*faults, FAST])
    answer, tuned, _ = one.run(compiler, runner)
    nest = only_nest(answer)
    found = {faults.get(Recipe.from_dict(c.schedule), "fast"): c for c in nest.candidates}
    assert len(found) == len(faults) + 1
    for name, (status, detail) in STATUS.items():
        assert (found[name].status, found[name].speedup) == (status, None), found[name].detail
        assert detail in found[name].detail
        assert "\n" not in found[name].detail
    assert found["fast"].status == "ok"
    assert nest.accepted == FAST.to_dict()
    assert not answer.kept_baseline and tuned is not None
    assert answer.verified
    assert answer.speedup_interval is not None and answer.speedup_interval[0] > 1

    assert one.memory.count == len(found)
    records = one.memory.store.records(nest.digest)
    assert sorted(r.status for r in records) == sorted([*(s for s, _ in STATUS.values()), "ok"])
    assert {r.family for r in records} == {"user"}


def test_confidence_is_in_what_was_measured(
    make_transfer: Callable[..., Transfer],
    spoil: Callable[[dict[Recipe, str]], None],
    compiler: Compiler,
    runner: Runner,
) -> None:
    """One that is sure where nothing failed: with the fast schedule it is, where all failed it is not."""
    weights = tuple(-100.0 * (name == "failures") for name in FEATURES)
    by_failures = Confidence(weights, 50.0, 0.9, Rates(1e9, 1e9))
    sure = only_nest(make_transfer([FAST], confidence=by_failures).run(compiler, runner)[0])
    assert (sure.confidence, sure.confident) == (pytest.approx(1.0), True)
    spoil({FAST: FAULTS["wrong"]})
    unsure = only_nest(make_transfer([FAST], confidence=by_failures).run(compiler, runner)[0])
    assert (unsure.confidence, unsure.confident) == (pytest.approx(0.0), False)
    unmeasured = make_transfer([FAST], confidence=by_failures, model_only=True).run(compiler, runner)[0]
    assert only_nest(unmeasured).confident is None


def test_when_all_fail_the_baseline_is_kept(
    make_transfer: Callable[..., Transfer],
    spoil: Callable[[dict[Recipe, str]], None],
    compiler: Compiler,
    runner: Runner,
) -> None:
    faults = {recipe(1): FAULTS["wrong"], recipe(2): FAULTS["segfault"]}
    spoil(faults)
    answer, tuned, queries = make_transfer(list(faults)).run(compiler, runner)
    assert statuses(queries) == ["wrong_result", "run_error"]
    assert (answer.kept_baseline, answer.speedup, tuned) == (True, 1.0, None)
    assert answer.note.startswith("every candidate failed, for 2 causes; 1 of 2: ")
    nest = only_nest(answer)
    assert nest.reason in answer.note
    assert (nest.accepted, nest.abstained, nest.best_s) == (None, False, nest.baseline_s)


def test_that_candidates_are_not_isolated_is_said_where_any_ran(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    monkeypatch.setattr(pipeline, "not_isolated", lambda: "they may write anywhere")
    assert make_transfer([FAST]).run(compiler, runner)[0].note.endswith("they may write anywhere")
    asked = make_transfer([FAST], model_only=True).run(compiler, runner)[0]
    assert "they may write anywhere" not in asked.note


def test_one_cause_of_all_failures_is_the_headline() -> None:
    def failed(status: str, detail: str) -> Measurement:
        return Measurement(status, detail=detail)  # type: ignore[arg-type]

    wrong = [failed("wrong_result", f"C: {n} of 64 elements differ, worst {n}.5e-03") for n in (3, 12)]
    unfit = failed("not_applicable", "no such loop")
    (cause,) = {why_all_failed(wrong), why_all_failed([unfit, *wrong])}
    assert (
        cause
        == "every candidate failed for one cause: wrong_result: C: 3 of 64 elements differ, worst 3.5e-03"
    )
    assert why_all_failed([unfit]) == "every candidate failed for one cause: not_applicable: no such loop"
    many = why_all_failed([*wrong, failed("run_error", "SIGSEGV")])
    assert many.startswith("every candidate failed, for 2 causes; 2 of 3: wrong_result: ")
    assert not why_all_failed([*wrong, Measurement.from_samples([1e-3])]) and not why_all_failed([])


def test_what_does_not_apply_gives_way_to_the_next(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    def source(schedule: Recipe, nest: LoopNest) -> Source:
        if schedule == recipe(1):
            raise NotApplicable("no such loop")
        return source_of(schedule, nest)

    monkeypatch.setattr(trials, "source_of", source)
    same_code = replace(FAST, prefetch=8)  # there is nothing to prefetch
    schedules = [recipe(1), FAST, same_code, recipe(2), recipe(3)]
    answer, _, queries = make_transfer(schedules, k=2).run(compiler, runner)
    assert statuses(queries) == ["not_applicable", "ok", "ok"]
    assert [c.schedule for c, _ in queries[0].tried] == [recipe(1), FAST, recipe(2)]
    assert answer.candidates_measured == 2


def test_candidates_are_compiled_together(make_transfer: Callable[..., Transfer], runner: Runner) -> None:
    batches: list[list[Source]] = []

    class Watched(Compiler):
        def build_all(self, sources: Iterable[Source]) -> list[Any]:
            batches.append(list(sources))
            return super().build_all(batches[-1])

    with Watched() as compiler:
        make_transfer([FAST, recipe(1), recipe(2), recipe(3)], k=3).run(compiler, runner)
    assert [len(batch) for batch in batches if batch[0].protocol == "plain"] == [3]


def test_the_time_budget_ends_the_trials_of_a_nest(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    """However long compiling took, the first of what was compiled is measured."""
    now_s = 0.0

    class SlowToBuild(NestBench):
        def measure(self, prepared: Sequence[Source | Measurement]) -> Iterator[Measurement]:
            nonlocal now_s
            now_s = 100.0
            return super().measure(prepared)

    monkeypatch.setattr(cpp, "NestBench", SlowToBuild)
    monkeypatch.setattr(pipeline, "time", SimpleNamespace(monotonic=lambda: now_s))
    answer, _, queries = make_transfer([FAST, recipe(1), recipe(2)], budget_s=50.0).run(compiler, runner)
    assert statuses(queries) == ["ok"]
    assert only_nest(answer).accepted == FAST.to_dict()


def test_where_no_schedule_fits_the_task_is_left_alone_and_says_so(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    monkeypatch.setattr(proposers, "scores_of", lambda *asked, vectors: np.full(len(asked[-1]), -np.inf))
    answer, tuned, queries = make_transfer([FAST]).run(compiler, runner)
    nest = only_nest(answer)
    assert (nest.abstained, nest.reason) == (True, "no schedule of a neighbour fits")
    assert (tuned, statuses(queries), answer.candidates_measured) == (None, [], 0)
    assert [near["kernel"] for near in nest.neighbours] == ["known"]
    assert answer.note == "nothing was tried; the baseline is kept"


def test_what_does_not_fit_is_not_even_a_candidate(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    """Though neighbours measured it. The network is shown what recipes make of the nest itself."""
    scores_of = proposers.scores_of

    def watched(bundle: Bundle, task: Any, recipes: Sequence[Recipe], vectors: VectorUnit) -> Any:
        assert vectors == AVX512  # of the device that it proposes for
        assert task.nest.has_loops
        assert task.trip_counts == {}
        scores = scores_of(bundle, task, recipes, vectors)
        assert np.isfinite(scores).all()
        return np.where([recipe == unfit for recipe in recipes], -np.inf, scores)

    unfit = replace(FAST, pack="q")
    monkeypatch.setattr(proposers, "scores_of", watched)
    transfer = make_transfer([FAST, unfit, recipe(1)], model_only=True)
    _, _, (query,) = transfer.run(compiler, runner)
    assert [candidate.schedule for candidate in query.candidates] == [FAST, recipe(1)]


def test_an_empty_store(make_transfer: Callable[..., Transfer], compiler: Compiler, runner: Runner) -> None:
    answer, _, _ = make_transfer([], model_only=True).run(compiler, runner)
    nest = only_nest(answer)
    assert nest.abstained
    assert "nothing was measured on a cpu/" in nest.reason
    assert (answer.baseline, answer.speedup, answer.verified) == (None, None, False)


def refuse(*_: Any) -> Any:
    raise BuildError("this cannot be put together")


def test_winners_that_do_not_fit_the_whole_are_not_kept(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    monkeypatch.setattr(loader, "splice", refuse)
    answer, tuned, queries = make_transfer([FAST]).run(compiler, runner)
    assert statuses(queries) == ["ok"]
    assert (answer.kept_baseline, answer.speedup, tuned) == (True, 1.0, None)
    assert "this cannot be put together" in answer.note
    assert only_nest(answer).accepted is None


def test_a_nest_that_cannot_be_measured_alone(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    class Unpreparable:
        prepare = of_whole = staticmethod(refuse)

    monkeypatch.setattr(cpp, "UnitCase", Unpreparable)
    answer, _, _ = make_transfer([FAST]).run(compiler, runner)
    nest = only_nest(answer)
    assert nest.abstained
    assert nest.reason == "it cannot be measured alone: this cannot be put together"


def test_nothing_is_kept_of_a_program_whose_whole_cannot_be_measured(
    make_transfer: Callable[..., Transfer],
    monkeypatch: pytest.MonkeyPatch,
    compiler: Compiler,
    runner: Runner,
) -> None:
    monkeypatch.setattr(cpp.CppExecutor, "assemble", refuse)
    answer, tuned, queries = make_transfer([FAST]).run(compiler, runner)
    assert statuses(queries) == ["ok"]
    assert (answer.failed, answer.verified, answer.verification) == (True, False, None)
    assert (answer.speedup, answer.tuned, answer.kept_baseline, tuned) == (None, None, True, None)
    assert answer.note == "this cannot be put together; nothing is kept"
    assert only_nest(answer).accepted is None


class Shares:
    """An executor of tasks that take so many seconds, and candidates that are so many times as fast."""

    def __init__(self, tasks_s: Sequence[float], speedups: Sequence[float]) -> None:
        self.tasks_s, self.speedups = tasks_s, speedups
        self.tried: list[int] = []

    @contextmanager
    def opened(self, task: Any, number: int) -> Iterator[Any]:
        def measure(order: Sequence[str], count: int) -> Iterator[tuple[str, Measurement]]:
            self.tried.append(number)
            runtime_s = self.tasks_s[number] / self.speedups[number]
            timing = {"runtime_s": runtime_s, "interval_s": (runtime_s, runtime_s)}
            gain = {"speedup": self.speedups[number], "speedup_interval": (self.speedups[number],) * 2}
            yield order[0], Measurement("ok", samples=9, **timing, **gain)

        seconds = self.tasks_s[number]
        yield SimpleNamespace(
            baseline=Timing(seconds, (seconds, seconds)),
            baseline_name="plain",
            baseline_note="",
            measure=measure,
            finals=lambda tried, competitors: (tried, {}),
        )


def measured_beside(
    whole_s: float, tasks_s: Sequence[float], speedups: Sequence[float], skipped: Sequence[str] = (),
    alike: Mapping[int, int] | None = None,
) -> tuple[Shares, list[Query]]:  # fmt: skip
    """A program's tasks, measured as a part of a whole that takes so many seconds. alike: to which of those
    before, by number."""
    executor: Any = Shares(tasks_s, speedups)
    proposer: Any = SimpleNamespace(rounds=(1.0,), first=lambda found, count: found, adopted=None)
    if alike:
        proposer.adopted = lambda query, candidate: candidate
    some: Any = None
    tasks: list[Any] = [
        SimpleNamespace(name=f"task {n}", calls=1, objection=None) for n in range(len(tasks_s))
    ]
    program: Any = SimpleNamespace(tasks=tasks, skipped=skipped)
    queries = [Query(task, some, n, candidates=["any"], asked=True) for n, task in enumerate(tasks)]
    for number, first in (alike or {}).items():
        queries[number].alike = queries[first]
    retrieval = Pipeline(program, some, proposer, executor, some, Options(k=1))
    retrieval.measure(queries, Timing(whole_s, (whole_s, whole_s)))
    return executor, queries


@pytest.mark.parametrize(
    ("tasks_s", "speedups", "tried"),
    [
        ((1.0, 0.004, 0.0001), (40.0, 2.0, 2.0), [0, 1]),  # 0.4% becomes 14%, 0.01% becomes 0.4%
        ((1.0, 0.004, 0.001), (40.0, 50.0, 2.0), [0, 1, 2]),  # 0.1% becomes 4% of what is left
        ((1.0, 0.004, 0.001), (1.5, 2.0, 2.0), [0]),
        ((1.0, 0.004, 0.001), (0.5, 2.0, 2.0), [0]),
    ],
)
def test_what_was_passed_over_is_tried_once_it_is_a_share_of_what_is_left(
    tasks_s: Sequence[float], speedups: Sequence[float], tried: list[int]
) -> None:
    executor, queries = measured_beside(sum(tasks_s), tasks_s, speedups)
    assert executor.tried == tried
    assert [query.number for query in queries if query.passed_over] == [
        n for n in range(len(tasks_s)) if n not in tried
    ]
    assert all("not worth a trial" in query.reason for query in queries if query.passed_over)


def test_a_task_alike_to_one_that_is_tried_after_all_has_its_schedule_and_no_reason() -> None:
    _, (*_, tried, alike) = measured_beside(1.008, (1.0, 0.004, 0.004), (40.0, 2.0, 2.0), alike={2: 1})
    assert tried.winner and alike.winner == tried.winner
    assert not tried.reason and not alike.reason


@pytest.mark.parametrize(("skipped", "tried"), [((), [0, 1]), (("a call",), [0])])
def test_what_is_left_is_what_the_tasks_take_where_they_are_all_of_the_program(
    skipped: Sequence[str], tried: list[int]
) -> None:
    """The whole takes half a second more than its tasks alone: for their sake, or that of another part."""
    executor, _ = measured_beside(1.5, (1.0, 0.004), (40.0, 2.0), skipped)
    assert executor.tried == tried


@pytest.mark.parametrize(
    ("whole_s", "skipped", "tried", "winners"),
    [
        (50.0, (), [0, 1], [0, 1]),  # the second is 4% of what they take alone
        (50.0, ("a call",), [0], []),  # which may be what takes the time
        (1.5, (), [0], []),
    ],
)
def test_a_whole_that_is_slower_than_its_tasks_is_tried_with_what_is_right(
    whole_s: float, skipped: Sequence[str], tried: list[int], winners: list[int]
) -> None:
    """The tasks' candidates are no faster than they are; the whole takes 50 times what they take alone."""
    executor, queries = measured_beside(whole_s, (1.0, 0.04, 0.0001), (0.9, 0.8, 0.7), skipped)
    assert set(executor.tried) >= set(tried)
    assert [query.number for query in queries if query.winner] == winners
