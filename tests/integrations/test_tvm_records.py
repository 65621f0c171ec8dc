"""Databases of MetaSchedule become records that retrieval finds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gnnperf.cli.main import run
from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.tasks import single
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.integrations.tvm import Imported, import_database
from gnnperf.integrations.tvm.records import target_fingerprint
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval.traces.proposals import propose
from gnnperf.schedules.traces import TraceDocument, replay
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store

SMALL, LARGE = (TvmWorkload("matmul", {"m": m, "n": 48, "k": 32}) for m in (32, 64))


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    import_tvm()
    return load_checkpoint(shipped_bundle(), Bundle)


def write_database(folder: Path, entries: Sequence[tuple[TvmWorkload, Any, Sequence[float]]]) -> None:
    """Of random schedules, so many seconds each, for a target each."""
    from tvm.s_tir.meta_schedule.database import JSONDatabase, TuningRecord

    folder.mkdir(exist_ok=True)
    database = JSONDatabase(work_dir=str(folder))
    for seed, (workload, target, seconds) in enumerate(entries):
        module = workload.build()
        space = DesignSpace(module, host_target())
        entry = database.commit_workload(module)
        for candidate, time_s in zip(space.sample(len(seconds), 100 * seed), seconds, strict=True):
            record = TuningRecord(candidate.sch.trace, entry, [time_s] * 2, target, space.arguments)
            database.commit_tuning_record(record)


def imported(folder: Path, bundle: Bundle, best: int = 8) -> tuple[Store, Imported]:
    store = Store.open(folder / "store", create=True)
    return store, import_database(folder, lambda: store, bundle, best)


def test_the_same_function_with_other_shapes_is_another_workload(tmp_path: Path, bundle: Bundle) -> None:
    times = [3e-3, 1e-3, 2e-3, 1e10]  # the last one failed
    write_database(tmp_path, [(SMALL, host_target(), times), (LARGE, host_target(), times)])
    store, done = imported(tmp_path, bundle, best=2)
    assert (done.nests, done.records) == (2, 4)
    assert done.left_out == {"failed when they were measured": 2}
    for workload in (SMALL, LARGE):
        records = store.records(TvmTask("any", workload.build()).graph.digest)
        assert [r.runtime_s for r in records] == [1e-3, 2e-3]
        assert [r.speedup for r in records] == [2.0, 1.0]  # over the median of three
        assert {r.device_fingerprint for r in records} == {describe_host().fingerprint}
        assert records[0].kernel == f"C-{workload.params['m']}x48"
        assert TraceDocument.from_json(records[0].schedule).loops == "SSR"


def test_its_traces_are_transferred(tmp_path: Path, bundle: Bundle) -> None:
    write_database(tmp_path, [(SMALL, host_target(), [1e-3, 2e-3])])
    store, _ = imported(tmp_path, bundle)
    task = TvmTask("new", LARGE.build())
    vector = bundle.embed([task.graph])[0]
    near = store.nearest(vector, 4, bundle.encoder_id, describe_host().fingerprint)
    assert propose(task, near, host_target()).candidates


def test_what_tvm_timed_without_packing_is_kept_apart(tmp_path: Path, bundle: Bundle) -> None:
    """Of weights that are free of layout."""

    class Dense(TvmWorkload):
        def build(self) -> Any:
            from tvm import te, topi

            a, w = te.placeholder((32, 48), name="a"), te.placeholder((40, 48), name="w")
            return single(te.create_prim_func([a, w, topi.nn.dense(a, w)]))

    write_database(tmp_path, [(Dense("dense", {}), host_target(), [1e-3]), (SMALL, host_target(), [1e-3])])
    store, done = imported(tmp_path, bundle)
    assert done.records == 2
    baselines = {}
    for workload in (Dense("dense", {}), SMALL):
        (record,) = store.records(TvmTask("any", workload.build()).graph.digest)
        baselines[workload.kind] = record.baseline
    assert baselines == {
        "dense": "metaschedule-median-constant-weights", "matmul": "metaschedule-median",
    }  # fmt: skip


def test_functions_of_one_graph_keep_the_names_of_their_blocks(tmp_path: Path, bundle: Bundle) -> None:
    class Product(TvmWorkload):
        def build(self) -> Any:
            from tvm import te

            a, b = te.placeholder((32, 24), name="a"), te.placeholder((24, 48), name="b")
            k = te.reduce_axis((0, 24), "k")
            turned = self.kind == "out"  # else MetaSchedule takes them for one workload

            def element(i: Any, j: Any) -> Any:
                return te.sum(b[k, j] * a[i, k] if turned else a[i, k] * b[k, j], k)

            return single(te.create_prim_func([a, b, te.compute((32, 48), element, name=self.kind)]))

    products = {name: Product(name, {}) for name in ("C", "out")}
    write_database(tmp_path, [(product, host_target(), [1e-3]) for product in products.values()])
    store, done = imported(tmp_path, bundle)
    assert (done.nests, done.records) == (1, 2)
    documents = [
        TraceDocument.from_json(record.schedule)
        for record in store.records(TvmTask("any", products["C"].build()).graph.digest)
    ]
    anchors = [name for document in documents for name, role in document.blocks.items() if role == "anchor"]
    assert sorted(anchors) == ["C", "out"]
    for name, document in zip(anchors, documents, strict=True):
        replay(document, DesignSpace(products[name].build(), host_target()).context)


def test_other_targets_are_kept_apart_or_left_out(tmp_path: Path, bundle: Bundle) -> None:
    import tvm

    old = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
    gpu = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    write_database(tmp_path, [(SMALL, old, [1e-3]), (LARGE, gpu, [1e-3])])
    store, done = imported(tmp_path, bundle)
    assert done.left_out == {"for the target cuda: expected llvm, a processor": 1}
    assert store.info().devices == {"cpu/x86_64/avx2": 1}


def test_targets_have_the_fingerprints_of_machines() -> None:
    import tvm

    assert target_fingerprint(host_target()) == describe_host().fingerprint
    arm = tvm.target.Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"})
    assert target_fingerprint(arm) == "cpu/aarch64/neon"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no"),
        ({"database_workload.json": "", "database_tuning_record.json": ""}, "it is empty"),
        ({"database_workload.json": "[3]\n", "database_tuning_record.json": "x\n"}, "cannot read"),
    ],
)
def test_what_is_no_database(files: dict[str, str], said: str, tmp_path: Path, bundle: Bundle) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        import_database(tmp_path, lambda: pytest.fail("a store was made"), bundle, 8)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_database(tmp_path, [(SMALL, host_target(), [2e-3, 1e-3, 1e10])])
    command = ["store", "import", str(tmp_path / "store")]
    assert run([*command, "--metaschedule", str(tmp_path), "--best", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "location": str(tmp_path / "store"),
        "done": "added",
        "nests": 1,
        "records": 1,
        "left_out": {"failed when they were measured": 1},
    }
    assert "left out 1 tuning records: failed when they were measured" in err
    for wrong in ([], [str(tmp_path / "x.zst"), "--metaschedule", str(tmp_path)]):
        assert run([*command, *wrong]) == 2
        assert "give one" in capsys.readouterr().err
