"""`gnnperf train release`: from measurements to a checkpoint, with the figures of what was held out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluation.worlds import FAIR, GOOD, answers, two_tastes
from helpers import gpu_world

from gnnperf.cli.main import run
from gnnperf.devices import load_device
from gnnperf.evaluation import replay
from gnnperf.evaluation.gpu_schedules.study import BOTH, GPU, KERNEL
from gnnperf.evaluation.release import loop_nests
from gnnperf.evaluation.replay import Answer, Folders, ReplayTask
from gnnperf.frontends.gpu_kernels import find_description
from gnnperf.frontends.gpu_kernels.tables import FILE, load_tables
from gnnperf.frontends.operators import Elementwise
from gnnperf.nn import Bundle, EncoderConfig, load_checkpoint
from gnnperf.nn.demand import LEVELS, DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.retrieval.confidence import Confidence
from gnnperf.store import Store
from gnnperf.training import fit_all
from gnnperf.training.demand import DemandFitSettings


def release(capfd: pytest.CaptureFixture[str], model: str, *options: object) -> dict[str, Any]:
    """The document that the command prints."""
    assert run(["train", "release", model, *map(str, options), "--json"]) == 0, capfd.readouterr().err
    document: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert document["model"] == model
    return document


@pytest.mark.slow
def test_loop_nests(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    corpus, folder = two_tastes(tmp_path / "corpus"), tmp_path / "checkpoint"
    document = release(
        capfd,
        "loop-nests",
        "--corpus",
        corpus,
        "-o",
        folder,
        "--seed",
        3,
        "--workers",
        1,
        "--anyway",
        "--quick",
    )
    bundle = load_checkpoint(folder, Bundle)
    assert document["figures"] == bundle.provenance.figures
    assert 0 < document["figures"]["efficiency_at_1"] <= document["figures"]["efficiency_at_3"] <= 1
    assert {row["k"] for row in document["rows"]} == {1, 3, 5, 10}
    assert bundle.provenance.seeds == [3]
    assert Confidence.of(bundle) is not None
    info = Store.open(folder / "store").info()
    assert info.nests == bundle.provenance.corpus["nests"] == 16
    assert Store.open(folder / "store").stale(bundle.encoder_id) == []
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_interrupted_it_goes_on_with_the_next_fold(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three policies in five folds each; the answers are made up."""
    corpus, folder, done = two_tastes(tmp_path / "corpus"), tmp_path / "checkpoint", list[str]()

    def in_turn(
        _: object, folders: Folders, tasks: Sequence[ReplayTask], *__: object
    ) -> Iterator[tuple[int, list[Answer]]]:
        known = folders.load()
        rows = {"ours": {"ours": GOOD, "nearest nest": FAIR}, "perceptron": {"without network": FAIR}}
        for at, task in enumerate(tasks):
            if len(done) == 4:
                done.append("")
                raise KeyboardInterrupt
            done.append(task.name)
            yield (
                at,
                [
                    answer
                    for row, reached in rows.get(task.policy, {"portfolio": FAIR}).items()
                    for answer in answers(known, row, [reached] * len(known.nests), spearman=0.25)
                    if answer.nest in task.fold.queries
                ],
            )

    monkeypatch.setattr(replay, "in_processes", in_turn)
    small = partial(fit_all, epochs=1, encoder=EncoderConfig(width=8, layers=1, embedding_width=8))
    monkeypatch.setattr(loop_nests, "fit_all", small)
    words = ["train", "release", "loop-nests", "--corpus", str(corpus), "-o", str(folder)]
    assert run(words) == 130
    unfinished = tmp_path / "checkpoint.unfinished"
    assert f"what the folds gave is in {unfinished}; run the same command to go on" in capfd.readouterr().err
    assert not folder.exists()
    assert run([*words, "--seed", "1"]) == 2
    assert "expected an empty folder or rows measured with seed 1, got 0" in capfd.readouterr().err
    assert run([*words, "--json"]) == 0, capfd.readouterr().err
    figures = json.loads(capfd.readouterr().out)["figures"]
    assert figures["nests_ratio_at_1"] == pytest.approx(2.0, rel=1e-3)
    names = [name for name in done if name]
    assert len(names) == len(set(names)) == 15 and not unfinished.exists()


@pytest.fixture
def made_up_replay(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[str]]:
    """`made_up_replay(share)`: ours reaches the best, what knows no network that share of the baseline's
    time. Gives the policies that are asked for. The network that is released is a small one."""

    def patch(share: float) -> list[str]:
        asked: list[str] = []

        def replayed(folders: Folders, tasks: Sequence[ReplayTask], *_: object) -> list[Answer]:
            asked.extend(sorted({task.policy for task in tasks}))
            corpus = folders.load()
            count = len(corpus.nests)
            rows = {"ours": GOOD, "nearest nest": FAIR, "portfolio": FAIR}
            rows |= {"perceptron": share, "without network": FAIR}
            return [
                answer
                for row, reached in rows.items()
                for answer in answers(corpus, row, [reached] * count, seed=tasks[0].seed, spearman=0.25)
            ]

        monkeypatch.setattr(loop_nests, "replay_all", replayed)
        small = partial(fit_all, epochs=1, encoder=EncoderConfig(width=8, layers=1, embedding_width=8))
        monkeypatch.setattr(loop_nests, "fit_all", small)
        return asked

    return patch


def test_a_network_that_helps_is_released(
    made_up_replay: Callable[[float], list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With what it is worth, how sure to be of it, and the measurements of all corpora."""
    asked = made_up_replay(FAIR)
    folders = two_tastes(tmp_path / "one"), two_tastes(tmp_path / "two", sizes=(32, 128))
    options = [word for folder in folders for word in ("--corpus", folder)]
    document = release(capfd, "loop-nests", *options, "-o", tmp_path / "checkpoint", "--seed", 5)
    assert {"ours", "perceptron", "constant"} <= set(asked)
    figures = document["figures"]
    assert figures["nests_full_at_1"] == pytest.approx(1.0, abs=1e-3)
    assert figures["nests_without_network_at_1"] == pytest.approx(0.5, rel=1e-3)
    for end in ("", "_low", "_high"):
        assert figures[f"nests_ratio_at_1{end}"] == pytest.approx(2.0, rel=1e-3)
    assert (figures["spearman"], figures["nearest_best"]) == (0.25, pytest.approx(0.5, rel=1e-3))
    assert figures["vs_without_network_at_3"] == pytest.approx(2.0, rel=1e-3)
    bundle = load_checkpoint(tmp_path / "checkpoint", Bundle)
    assert bundle.provenance.figures == figures
    assert bundle.provenance.seeds == [5]
    assert Confidence.of(bundle) is not None
    assert bundle.provenance.corpus["nests"] == 24  # of three sizes, 128 in both folders
    info = Store.open(tmp_path / "checkpoint" / "store").info()
    assert (info.nests, info.records) == (24, 32 * 4)


def test_a_network_that_does_not_help_is_released_only_anyway(
    made_up_replay: Callable[[float], list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The perceptron is as good everywhere."""
    made_up_replay(GOOD)
    words = ["train", "release", "loop-nests", "--corpus", str(two_tastes(tmp_path / "corpus"))]
    words += ["-o", str(tmp_path / "checkpoint")]
    assert run(words) == 2
    said = capfd.readouterr().err
    assert "expected a network that helps on held-out families, got 1.000 of what is reached without" in said
    assert "(95% interval 1.000 to 1.000); collect more, or give --anyway" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "checkpoint").exists()
    assert run([*words, "--anyway", "--json"]) == 0, capfd.readouterr().err
    assert json.loads(capfd.readouterr().out)["figures"]["nests_ratio_at_1"] == pytest.approx(1.0)
    assert load_checkpoint(tmp_path / "checkpoint", Bundle).provenance.figures["nests_ratio_at_1"] == 1.0


def operators(path: Path) -> None:
    """Elementwise kernels of three GPUs, at 70% of their bandwidths and 5 us to start."""
    rows = []
    for gpu in ("Tesla T4", "NVIDIA L4", "Tesla V100-PCIE-32GB"):
        bandwidth = (load_device(gpu).bandwidth_gbps or 0) * 1e9
        for split in ("train", "test"):
            for size in (2**14, 2**18, 2**22, 2**24):
                runtime_s = 5e-6 + 8 * size / (0.7 * bandwidth)
                rows.append({
                    "op_family": "elementwise", "op": "relu", "device": gpu, "split": split, "B": size,
                    "M": None, "N": None, "K": None, "H": 1, "latency_ms": runtime_s * 1e3,
                })  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_gpu_runtime(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    operators(tmp_path / "gpu_operators.parquet")
    config, folder = tmp_path / "config.yaml", tmp_path / "checkpoint"
    config.write_text("seeds: [0, 1]\nsplits: [train, test]\nfit: {steps: 20, light_steps: 60}\n")
    document = release(
        capfd, "gpu-runtime", "--data", tmp_path, "-c", config, "-o", folder, "--workers", 1
    )  # fmt: skip
    head = load_checkpoint(folder, RuntimeHead)
    assert head.provenance.seeds == document["seeds"] == [0, 1]
    assert document["corpus"]["rows"]["Tesla T4"] == 8
    (row,) = document["rows"]
    assert row["family"] == "elementwise"
    assert 1 < row["factor_50%"] <= row["factor_80%"] <= row["factor_95%"]
    found = head.predict([Elementwise("relu", 2**22).workload()], load_device("l4"))
    expected_s = 5e-6 + 8 * 2**22 / (0.7 * (load_device("l4").bandwidth_gbps or 0) * 1e9)
    assert float(found.runtime_s[0]) == pytest.approx(expected_s, rel=0.5)


def test_tunable_kernels(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, folder = tmp_path / "tunable_kernels.parquet", tmp_path / "checkpoint"
    gpu_world.write(data, gpu_world.rows(("pnpoly", "hotspot"), gpu_world.GPUS[:3], 30))
    document = release(capfd, "tunable-kernels", "--data", tmp_path, "-o", folder, "--quick")
    bundle = load_checkpoint(folder, DemandBundle)
    assert set(bundle.networks) == {"pnpoly", "hotspot", "any"}
    assert document["figures"] == bundle.provenance.figures
    assert 0 < document["figures"]["heldout_gpu_top5"] <= 1
    assert document["corpus"] == {"file": data.name, "rows": 180, "tables": 6}
    pnpoly = find_description("pnpoly")
    assert sum(len(table) for table in bundle.tables(pnpoly)) == 90
    for row in document["rows"]:
        assert row["factor_80%"] == pytest.approx(2 ** bundle.half_widths[row["kernel"]]["80"])


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({"steps": 60}, None),
        ({"steps": 61}, "expected an evaluation with fit"),
        (
            {"steps": 60, "protocols": [GPU]},
            "with protocols ['gpu', 'kernel', 'gpu and kernel'], got ['gpu']",
        ),
        ({"steps": 60, "configurations": 29}, "got one of other measurements"),
    ],
)
def test_an_evaluation_of_something_else_is_refused(
    of: dict[str, Any], message: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gpu_world.write(tmp_path / FILE, gpu_world.rows(("pnpoly", "hotspot"), gpu_world.GPUS[:3], 30))
    errors = {f"{name}error_{level}": 1.0 for name in ("", "adapted_") for level in LEVELS}
    rows = [
        {"held_out": BOTH, "kernel": table.kernel, "space": table.space, "gpu": table.gpu,
         "configurations": of.get("configurations", len(table)), **errors}
        for table in load_tables(tmp_path / FILE)
    ]  # fmt: skip
    fit = asdict(DemandFitSettings(steps=of["steps"]))
    settings = {"data": FILE, "fit": fit, "protocols": of.get("protocols", [GPU, KERNEL, BOTH])}
    evaluation = tmp_path / "evaluation.json"
    document = {"benchmark": "gpu-schedules", "figures": {}, "rows": rows, "settings": settings}
    evaluation.write_text(json.dumps(document))
    words = ("--data", tmp_path, "-o", tmp_path / "new", "--evaluation", evaluation, "--quick")
    assert run(["train", "release", "tunable-kernels", *map(str, words)]) == (2 if message else 0)
    error = capfd.readouterr().err
    assert not message or (message in error and error.count("\n") == 1)


def test_mistakes_are_one_line_before_the_training(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    (tmp_path / "bad.yaml").write_text("fit: {epochs: 3}")
    (tmp_path / "gpu_operators.parquet").touch()
    new, data = ("-o", tmp_path / "new"), ("--data", tmp_path)
    for words, message in (
        (("loop-nests", "-o", tmp_path / "full"), "expected a new folder, or a checkpoint to replace"),
        (("loop-nests", *new, "--corpus", tmp_path / "none"), "none"),
        (("tunable-kernels", *new), "expected tunable_kernels.parquet: give --data"),
        (("gpu-runtime", *new), "expected gpu_operators.parquet: give --data, or set GNNPERF_DATA"),
        (("gpu-runtime", *new, *data), "cannot read"),
        (("gpu-runtime", *new, *data, "-c", tmp_path / "bad.yaml"), "epochs"),
        (("gpu-runtime", *new, *data, "--seed", 1), "No such option"),
        (("tensor-programs", *new, "--evaluation", tmp_path / "bad.yaml"), "cannot read"),
        (("graphs", *new), "No such command 'graphs'"),
    ):
        assert run(["train", "release", *map(str, words)]) == 2, words
        error = capfd.readouterr().err
        assert message in error and error.count("\n") == 1
    assert not (tmp_path / "new").exists()
