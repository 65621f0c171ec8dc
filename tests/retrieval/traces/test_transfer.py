"""From a corpus of TVM schedules to a store, and from its traces to candidates for another workload."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tensor_world import HELD_OUT, MATMUL, SOFTMAX, write_checkpoint, write_corpus
from numpy.typing import NDArray

from gnnperf.backends.tvm.executor import TvmBench, TvmExecutor
from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import computed, tensors
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.frontends.tvm import TvmTask, load_tasks
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.program import TvmProgram
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.tasks import single
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.graph import EncodedGraph
from gnnperf.measure import Measurement, Timing
from gnnperf.measure.interleaved import Pace
from gnnperf.measure.outcome import Outcome
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval import Options, Pipeline
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.retrieval.memory import Memory
from gnnperf.retrieval.traces.candidates import TraceCandidate
from gnnperf.retrieval.traces.proposals import DRAWN, best_traces, propose
from gnnperf.retrieval.traces.proposer import TraceProposer
from gnnperf.retrieval.traces.ranking import hedged, ranked, ranked_again, trace_features
from gnnperf.schedules.traces import TraceDocument
from gnnperf.schedules.traces.document import anchor_tiles
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Neighbour, Store

NEW = TvmWorkload("matmul", {"m": 32, "n": 80, "k": 48})


class ByNodes:
    """A cost model that prefers large graphs."""

    def score_encoded(self, graphs: Sequence[EncodedGraph]) -> NDArray[np.float32]:
        return np.array([len(graph.node_features) for graph in graphs], np.float32)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    import_tvm()
    return load_checkpoint(shipped_bundle(), Bundle)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle) -> Store:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, (MATMUL, SOFTMAX, HELD_OUT))
    store = Store.open(folder / "store", create=True)
    assert fill_store(read_corpus(folder), bundle, store, best=3) == 6
    return store


def neighbours(store: Store, task: TvmTask, bundle: Bundle) -> list[Neighbour]:
    vector = bundle.embed([task.graph])[0]
    return store.nearest(vector, 8, bundle.encoder_id, describe_host().fingerprint)


def transferred(task: TvmTask, store: Store, bundle: Bundle) -> list[TraceCandidate]:
    pool = propose(task, neighbours(store, task, bundle), host_target())
    return [candidate for candidate in pool.candidates if candidate.policy != DRAWN]


def pipeline(
    program: TvmProgram, store: Store, bundle: Bundle, executor: TvmExecutor | None = None, **options: Any
) -> Pipeline:
    proposer = TraceProposer(bundle, ByNodes(), [store], describe_host(), program.target)
    return Pipeline(program, bundle, proposer, executor, describe_host(), Options(**options))


def test_the_store_has_the_best_traces_of_what_models_learn_from(store: Store) -> None:
    info = store.info()
    assert info.families == {"matmul": 3, "softmax": 3}  # of 4 that were right; none held out
    task = TvmTask("any", MATMUL.build())
    records = store.records(task.graph.digest)
    assert [r.runtime_s for r in records] == pytest.approx([1e-3 / 4, 1e-3 / 3, 1e-3 / 2])
    assert {r.schedule_kind for r in records} == {"trace"} and {r.baseline for r in records} == {
        "tvm-default"
    }
    assert records[0].speedup == pytest.approx(8)
    assert TraceDocument.from_json(records[0].schedule).blocks["C"] == "anchor"


def test_an_empty_corpus_is_bad_input(tmp_path: Path, bundle: Bundle) -> None:
    with pytest.raises(InputError, match="expected a corpus folder"):
        fill_store(read_corpus(tmp_path), bundle, Store.open(tmp_path / "store", create=True))


def test_traces_of_neighbours_become_different_schedules_of_the_task(store: Store, bundle: Bundle) -> None:
    task = TvmTask("new", NEW.build())
    near = neighbours(store, task, bundle)
    assert [n.nest.family for n in near] == ["matmul", "softmax"]
    pool = propose(task, near, host_target())
    found = [c for c in pool.candidates if c.policy != DRAWN]
    assert len({c.schedule.to_json() for c in found}) == len(found) >= 3
    assert {c.neighbour_kernel for c in found} == {MATMUL.name}
    assert list(pool.refused) == [SOFTMAX.name]  # whose traces mean nothing for a product
    first = ranked(found, ByNodes())
    assert sorted(c.key for c in first) == sorted(c.key for c in found)
    assert first[0].score == ByNodes().score_encoded([c.graph for c in found]).max()
    assert "SSRSRS" in first[0].schedule.describe()


def test_the_first_few_differ(store: Store, bundle: Bundle) -> None:
    """Where the model sees no difference, it is not the same schedule twice but for one tile."""
    task = TvmTask("new", NEW.build())

    class Undecided:
        def score_encoded(self, graphs: Sequence[EncodedGraph]) -> NDArray[np.float32]:
            return np.zeros(len(graphs), np.float32)

    order = ranked(transferred(task, store, bundle), Undecided())
    features = np.stack([trace_features(c.schedule) for c in order])
    apart = [float(np.abs(a - b).sum()) for a, b in itertools.pairwise(features)]
    assert np.mean(apart[:3]) > np.mean(apart[3:])


def test_the_rest_is_ranked_again_with_variants_of_the_fastest(store: Store, bundle: Bundle) -> None:
    task = TvmTask("new", NEW.build())
    first, second, *left = transferred(task, store, bundle)
    again = ranked_again(task, host_target(), ByNodes(), left, [(first, 2e-3), (second, 1e-3)])
    keys = [candidate.key for candidate in again]
    assert len(set(keys)) == len(keys) and not {first.key, second.key} & set(keys)
    assert {c.key for c in left} < set(keys)
    new = [candidate for candidate in again if candidate.policy == "variant"]
    assert new and {c.neighbour for c in new} == {second.neighbour}
    for candidate in new:  # one loop's tiles are others
        pairs = zip(anchor_tiles(candidate.schedule), anchor_tiles(second.schedule), strict=True)
        assert sum(one.factors != other.factors for one, other in pairs) == 1
    assert ranked_again(task, host_target(), ByNodes(), left, [(first, None)]) == left


def test_the_most_faithful_is_in_the_first_round(store: Store, bundle: Bundle) -> None:
    task = TvmTask("new", NEW.build())
    found = sorted(transferred(task, store, bundle), key=lambda c: -c.turn)
    *others, faithful = found
    assert hedged(found, 2) == [others[0], faithful, *others[1:]]
    assert hedged(found, 1) == found and hedged(found, len(found)) == found and hedged([], 4) == []


def test_candidates_are_tried_in_rounds(store: Store, bundle: Bundle) -> None:
    asked: list[tuple[int, float]] = []

    class Server:
        def baseline(self, number: int) -> Outcome:
            return Outcome("ok", (5.0,))

        def measure(self, number: int, modules: Sequence[Any], best_s: float) -> list[Outcome]:
            asked.append((len(modules), best_s))
            return [Outcome("ok", (1e-3 / len(asked),)) for _ in modules]

    task = TvmTask("new", NEW.build())
    program = TvmProgram("new", [task], host_target())
    for k, rounds in ((1, [1]), (2, [2]), (5, [3, 1, 1]), (8, [4, 2, 2])):
        asked.clear()
        trying = pipeline(program, store, bundle, k=k)
        (query,) = trying.ask()
        bench = TvmBench(task, 0, Server(), program.target, Pace())  # type: ignore[arg-type]
        tried = trying.try_first(query, bench)
        assert [count for count, _ in asked] == rounds and len({c.key for c, _ in tried}) == k
        assert [best_s for _, best_s in asked] == [5.0, 1e-3, 5e-4][: len(asked)]


def shifted(by: int) -> Any:
    te = import_tvm().te
    x = te.placeholder((64, 96), "float32", "x")
    y = te.compute((64, 32), lambda i, j: te.exp(x[i, j + by]), "y")
    return single(te.create_prim_func([x, y]))


def test_tasks_with_the_same_graph_share_what_one_of_them_found(store: Store, bundle: Bundle) -> None:
    tasks = [TvmTask(f"from_{by}", shifted(by)) for by in (0, 8, 64)]
    program = TvmProgram("steps", tasks, host_target())
    trying = pipeline(program, store, bundle, k=2)
    assert not TvmExecutor(program, measuring=False).verifies_whole  # then each is measured by itself
    first, *others = trying.ask(sharing=True)
    assert not first.asked and first.measured_for == 3  # it is, once it is worth a trial
    trying.propose(first)
    assert first.candidates and all(q.alike is first and not q.candidates for q in others)
    assert all(query.candidates for query in trying.ask())
    candidate = next(c for c in first.candidates if "parallel" in str(c.program))
    first.baseline = Timing(1e-3, (1e-3, 1e-3))
    first.winner = candidate, Measurement("ok", 1e-4, interval_s=(1e-4, 1e-4))
    trying.measure(others, Timing(1.0, (1.0, 1.0)))
    x = np.random.default_rng(0).random((64, 96), np.float32)
    for query, begin in zip(others, (8, 64), strict=True):
        assert query.winner is not None and query.winner[1] is first.winner[1]
        assert not query.tried and query.baseline == first.baseline
        assert "parallel" in str(query.winner[0].program)
        kernel = build_kernel(query.winner[0].program, host_target())
        (found,) = computed(kernel, [*tensors([x, np.empty((64, 32), np.float32)])]).values()
        np.testing.assert_allclose(found, np.exp(x[:, begin : begin + 32]), rtol=1e-5)
    first.winner, first.reason = None, "nothing was faster"
    trying.measure([others[0]], Timing(1.0, (1.0, 1.0)))
    assert others[0].reason == "as from_0, which is alike: nothing was faster"


def test_best_traces_are_the_fastest_each_once(store: Store, bundle: Bundle) -> None:
    near = neighbours(store, TvmTask("any", MATMUL.build()), bundle)[0]
    doubled = [*near.records, *near.records]
    assert [r.runtime_s for r in best_traces(doubled, 2)] == sorted(r.runtime_s or 0 for r in near.records)[
        :2
    ]


def test_the_whole_way(tmp_path: Path, store: Store, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retrieve for a kernel of two tasks; what was measured is found by the next."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    set_runtime_threads()
    source = tmp_path / "kernels.py"
    source.write_text(
        "import tvm\nfrom gnnperf.frontends.tvm.workloads import TvmWorkload\n"
        "def both():\n"
        "    product = TvmWorkload('matmul', {'m': 32, 'n': 80, 'k': 48}).build()['main']\n"
        "    rows = TvmWorkload('softmax', {'m': 24, 'n': 40}).build()['main']\n"
        "    return tvm.IRModule({'product': product, 'rows': rows})\n"
    )
    program = TvmProgram("both", load_tasks(f"{source}:both"), host_target())
    own = Store.open(tmp_path / "own", create=True)
    with BenchServer([task.module for task in program.tasks], program.target) as server:
        executor = TvmExecutor(program, server=server)
        answer, queries = pipeline(program, store, bundle, executor, k=2).run()
    assert [nest.name for nest in answer.nests] == ["both_product", "both_rows"]
    assert answer.verified and answer.baseline is not None and answer.tuned is not None
    assert answer.candidates_measured == 4
    for nest in answer.nests:
        assert [c.status for c in nest.candidates] == ["ok", "ok"]
        assert (nest.accepted is None) == (nest.best_s == nest.baseline_s)
    total_s = sum(q.baseline.runtime_s for q in queries if q.baseline and q.baseline.runtime_s)
    assert answer.baseline.runtime_s == pytest.approx(total_s)
    assert answer.tuned.runtime_s <= answer.baseline.runtime_s
    memory = Memory(own, "both", "tvm", bundle, describe_host())
    memory.remember(queries, executor.provenance)
    assert memory.count == own.info().records == 4
    unmeasured = TvmExecutor(program, measuring=False)
    told, _ = pipeline(program, own, bundle, unmeasured, model_only=True).run()
    assert told.candidates_measured == 0 and "--model-only" in told.note
    assert [nest.neighbours[0]["distance"] for nest in told.nests] == pytest.approx([0, 0], abs=1e-5)


def test_without_records_it_says_so(tmp_path: Path, bundle: Bundle) -> None:
    empty = Store.open(tmp_path / "empty", create=True)
    task = TvmTask("new", NEW.build())
    program = TvmProgram("new", [task], host_target())
    unmeasured = TvmExecutor(program, measuring=False)
    (nest,) = pipeline(program, empty, bundle, unmeasured, model_only=True).run()[0].nests
    assert nest.abstained and "no TVM schedule was measured" in nest.reason


def test_a_checkpoint_can_be_made(tmp_path: Path) -> None:
    from gnnperf.nn import load_checkpoint
    from gnnperf.nn.traces import TensorBundle

    write_checkpoint(tmp_path, (MATMUL,))
    assert len(load_checkpoint(tmp_path, TensorBundle).score([TvmTask("any", NEW.build()).graph])) == 1


def test_what_measures_is_there_before_torch() -> None:
    """Processes are forked before torch starts threads; and what is not needed takes seconds to import."""
    code = (
        "import sys, gnnperf.session, gnnperf.backends.tvm.executor, gnnperf.backends.cpp.executor; "
        "assert not {'torch', 'dace', 'tvm', 'lancedb', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
