"""`gnnperf eval tensor-ranking` and the training of the released cost model, on a few schedules."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.tensor_world import HELD_OUT, MATMUL, SOFTMAX, write_corpus

from gnnperf.cli.main import run
from gnnperf.evaluation.trace_ranking import baselines
from gnnperf.graph import EncodedGraph
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.traces import TensorBundle
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store
from gnnperf.training.traces import features
from gnnperf.training.traces.corpus import load_tensor_corpus

FAILED = features.ScheduleFeatures(None, None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, (MATMUL, SOFTMAX, HELD_OUT), count=4)
    return folder


def test_features_are_kept_for_the_next_time(corpus: Path, tmp_path: Path) -> None:
    measured = load_tensor_corpus(corpus)
    made = features.corpus_features(measured, tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 3
    kept = features.corpus_features(measured, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    for before, after in zip(chain(*made), chain(*kept), strict=True):
        assert before.graph is not None and after.graph is not None
        assert before.stores is not None and after.stores is not None
        assert before.stores.shape[1] == features.STORE_FEATURES
        assert np.array_equal(before.stores, after.stores)
        for name in EncodedGraph.__slots__:
            assert np.array_equal(getattr(before.graph, name), getattr(after.graph, name)), name
    torn = next(iter(files))
    whole = torn.read_bytes()
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"mark": [1]}), other)
    changed = bytes([*whole[:200], whole[200] ^ 1, *whole[201:]])
    for damaged in (b"torn", whole[:-9], changed, bytes(other.getvalue())):
        torn.write_bytes(damaged)
        assert [len(found) for found in features.corpus_features(measured, tmp_path)] == [5, 5, 5]
        assert torn.read_bytes() == whole


def test_features_are_made_anew_by_another_tvm(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = load_tensor_corpus(corpus)
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path / "cache"))
    assert features.default_cache() == tmp_path / "cache" / "tensor"
    monkeypatch.setattr(features, "replayed", lambda _, traces: [FAILED] * len(traces))
    monkeypatch.setattr(features, "version", lambda name: "0")
    for found in (features.corpus_features(measured, tmp_path), features.corpus_features(measured, tmp_path)):
        assert [*chain(*found)] == [FAILED] * len([*chain(*found)])
    monkeypatch.undo()
    assert all(made.graph is not None for made in chain(*features.corpus_features(measured, tmp_path)))


def test_the_command_and_the_release(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--corpus", str(corpus), "--cache", str(tmp_path / "cache")]
    command = ["eval", "tensor-ranking", *options, "--folds", "2", "--quick", "--json"]
    command += ["--output", str(tmp_path / "out")]
    assert run(command) == 0
    text = capfd.readouterr().out
    document = json.loads(text)
    assert json.loads((tmp_path / "out" / "tensor-ranking.json").read_text()) == document
    for name in baselines.CONTENDERS:  # nothing is trained again
        monkeypatch.setitem(baselines.CONTENDERS, name, lambda *_: pytest.fail("trained again"))
    assert run(command) == 0
    assert json.loads(capfd.readouterr().out) == document
    assert document["benchmark"] == "tensor-ranking"
    for name in ("top1", "top5", "pairwise", "xgb_top1", "xgb_top5", "xgb_pairwise", "heldout_kind_top1",
                 "heldout_kind_xgb_top1"):  # fmt: skip
        assert 0 <= document["figures"][name] <= 1, name
    assert document["settings"]["schedules"] == 15
    encoder = load_checkpoint(shipped_bundle(), Bundle).encoder_id
    assert document["settings"]["began_as"] == encoder
    monkeypatch.undo()
    assert run([*command[: command.index("--output")], "--from-scratch"]) == 0
    scratch = capfd.readouterr().out
    assert json.loads(scratch)["settings"]["began_as"] is None
    (tmp_path / "scratch.json").write_text(scratch)
    (tmp_path / "ranking.json").write_text(text)
    command = ["train", "release", "tensor-programs", *options, "--quick", "--json"]
    command += ["--evaluation", str(tmp_path / "ranking.json"), "-o", str(tmp_path / "bundle")]
    other = [*command, "--anyway", "--evaluation", str(tmp_path / "scratch.json")]
    assert run(other) == 2 and f"with began_as {encoder}, got None" in capfd.readouterr().err
    assert run([*command, "--anyway"]) == 0
    released = json.loads(capfd.readouterr().out)
    bundle = load_checkpoint(tmp_path / "bundle", TensorBundle)
    assert bundle.trees is not None
    assert released["figures"] == bundle.provenance.figures
    assert Store.open(tmp_path / "bundle" / "store").info().nests == 2
    for name, value in document["figures"].items():  # what is not asked of the model itself is taken over
        if "kind" in name or "xgb" in name:
            assert bundle.provenance.figures[name] == value
    graphs = features.corpus_features(load_tensor_corpus(corpus), tmp_path / "cache")[2]
    scores = bundle.score_encoded([f.graph for f in graphs if f.graph is not None])
    reached_s = [1e-3, 1e-3 / 2, 1e-3 / 3, 1e-3 / 4, 2e-3]  # the last of them failed: the baseline
    assert bundle.provenance.figures["top1"] == pytest.approx(min(reached_s) / reached_s[scores.argmax()])
    learned_from = bundle.provenance.corpus
    assert (learned_from["schedules"], learned_from["kinds"]) == (10, ["matmul", "softmax"])
    assert learned_from["began_as"] == encoder
    assert np.isfinite(scores).all()


def test_what_is_no_corpus_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "tensor-ranking", "--corpus", str(tmp_path)]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1 and "expected a corpus folder" in error


def test_the_folder_to_write_is_looked_at_before_anything_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    command = ["eval", "tensor-ranking", "--corpus", str(tmp_path), "--output", str(tmp_path / "file" / "x")]
    assert run(command) == 2
    assert "--output: expected a folder" in capfd.readouterr().err
