"""MetaSchedule with our cost model and our database, through its public hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.integrations.tvm import GNNCostModel, TransferDatabase


@pytest.fixture(scope="module")
def module() -> Any:
    import tvm
    from tvm import te

    a, b = te.placeholder((96, 64), name="A"), te.placeholder((64, 80), name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((96, 80), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return tvm.IRModule({"main": te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")})


@pytest.fixture(scope="module")
def context(module: Any) -> Any:
    from tvm.s_tir import meta_schedule as ms

    return ms.TuneContext(
        mod=module, target=host_target(2), space_generator="post-order-apply", search_strategy="evolutionary",
        num_threads=1, rand_state=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def candidates(context: Any, module: Any) -> list[Any]:
    """Sixteen random schedules."""
    from tvm.s_tir import meta_schedule as ms

    designs, found = context.generate_design_space(), []
    model, database = ms.cost_model.RandomModel(seed=1), ms.database.MemoryDatabase()
    context.pre_tuning(16, 16, designs, database, model)
    found = list(context.generate_measure_candidates())
    context.post_tuning()
    assert len(found) == 16
    return found


def results(runtimes_s: np.ndarray) -> list[Any]:
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    return [RunnerResult([s], None) if np.isfinite(s) else RunnerResult(None, "failed") for s in runtimes_s]


def test_the_search_of_metaschedule_goes_by_it(module: Any) -> None:
    from tvm.s_tir import meta_schedule as ms

    model, small = GNNCostModel(), dict(population_size=32, init_min_unmeasured=16, genetic_num_iters=1)
    tuning = ms.TuneContext(
        mod=module, target=host_target(2), space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(**small), num_threads=1, rand_state=1,
    )  # fmt: skip
    tuning.pre_tuning(8, 8, tuning.generate_design_space(), ms.database.MemoryDatabase(), model)
    chosen = tuning.generate_measure_candidates()
    tuning.post_tuning()
    assert len(chosen) == 8 and np.isfinite(model.predict(tuning, chosen)).all()


@pytest.mark.slow
def test_tvm_itself_builds_and_runs_what_it_chooses(module: Any, tmp_path: Path) -> None:
    from tvm.s_tir import meta_schedule as ms

    found = ms.tune_tir(
        module, host_target(2), str(tmp_path), max_trials_global=4, num_trials_per_iter=4,
        cost_model=GNNCostModel(), builder=ms.builder.LocalBuilder(initializer=import_tvm),
    )  # fmt: skip
    runtimes_s = [float(record.run_secs[0]) for record in found.get_all_tuning_records()]
    assert 0 < min(runtimes_s) < 1


def test_it_may_be_told_of_nothing(context: Any) -> None:
    GNNCostModel().update(context, [], [])  # as TVM does where no schedule of a round was built


def test_measurements_correct_the_order(context: Any, candidates: list[Any]) -> None:
    model = GNNCostModel()
    before = model.predict(context, candidates)
    assert before.shape == (16,) and np.isfinite(before).all() and np.ptp(before) > 0
    # The machine turns out to like just what the model does not: measured on half of them.
    runtimes = 1e-3 * 2.0**before
    runtimes[3] = np.inf
    model.update(context, candidates[:8], results(runtimes[:8]))
    after = model.predict(context, candidates)
    measured = np.isfinite(runtimes[:8])
    agreement = np.corrcoef(after[:8][measured], -np.log2(runtimes[:8][measured]))[0, 1]
    assert agreement > np.corrcoef(before[:8][measured], -np.log2(runtimes[:8][measured]))[0, 1] + 0.5
    assert not np.allclose(after[8:], before[8:])  # those that were not measured move with their like


def test_what_was_learned_is_saved_and_loaded(context: Any, candidates: list[Any], tmp_path: Path) -> None:
    model, path = GNNCostModel(), tmp_path / "model.npz"
    model.update(context, candidates, results(np.linspace(1e-3, 2e-3, 16)))
    model.save(str(path))
    again = GNNCostModel()
    again.load(str(path))
    np.testing.assert_allclose(again.predict(context, candidates), model.predict(context, candidates))
    path.write_text("nonsense")
    with pytest.raises(RuntimeError, match=r"expected what GNNCostModel.save wrote"):  # TVM's
        again.load(str(path))


def test_a_schedule_takes_free_weights_as_the_function_does() -> None:
    """Of a product for which a library is called first: a database has schedules alone."""
    import tvm
    from tvm import te, topi

    a, w = te.placeholder((128, 768), name="a"), te.placeholder((512, 768), name="w")
    function = te.create_prim_func([a, w, topi.nn.dense(a, w)])
    module, target = tvm.IRModule({"main": function.with_attr("global_symbol", "main")}), host_target(2)
    record = TransferDatabase().query_tuning_record(module, target, "main")
    replayed = tvm.s_tir.Schedule(module)
    record.trace.apply_to_schedule(replayed, remove_postproc=False)
    assert "w_global" in replayed.mod.script()  # packed
    given = [np.random.default_rng(0).random(s, dtype=np.float32) for s in ((128, 768), (512, 768))]
    found = tvm.runtime.tensor(np.zeros((128, 512), np.float32))
    tvm.tirx.build(replayed.mod, target)["main"](*map(tvm.runtime.tensor, given), found)
    np.testing.assert_allclose(found.numpy(), given[0] @ given[1].T, rtol=1e-4)


def test_a_workload_never_tuned_gets_a_schedule(module: Any) -> None:
    import tvm
    from tvm.s_tir import meta_schedule as ms

    database = TransferDatabase()
    target = host_target(2)
    assert not database.has_workload(module) and len(database) == 0
    schedule = database.query_schedule(module, target, "main")
    record = database.query_tuning_record(module, target, "main")
    replayed = tvm.s_tir.Schedule(module)
    record.trace.apply_to_schedule(replayed, remove_postproc=False)
    tvm.ir.assert_structural_equal(replayed.mod, schedule.mod)
    a, b = (np.random.default_rng(0).random(s, dtype=np.float32) for s in ((96, 64), (64, 80)))
    c = tvm.runtime.tensor(np.zeros((96, 80), np.float32))
    tvm.tirx.build(schedule.mod, target)["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
    # Records of processors say nothing of a GPU, nor of another processor.
    assert database.query_schedule(module, tvm.target.Target("cuda"), "main") is None
    more = database.query_schedule(module, host_target(64), "main")
    assert more is not None and more is not database.query_schedule(module, target, "main")
    # What is committed goes first.
    workload = database.commit_workload(module)
    plain = tvm.s_tir.Schedule(module)
    plain.get_loops(plain.get_sblock("C"))  # an empty trace is none to TVM
    arguments = ms.arg_info.ArgInfo.from_entry_func(module, True)
    record = ms.database.TuningRecord(plain.trace, workload, [1e-3], target, arguments)
    database.commit_tuning_record(record)
    tvm.ir.assert_structural_equal(database.query_ir_module(module, target, "main"), module)
