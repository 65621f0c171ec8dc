"""`gnnperf train` on a small synthetic corpus, and what the network learns from it."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from helpers.nests import RECIPES, small_nest
from helpers.synthetic import (
    DEVICE,
    held_nest,
    measurement,
    nest,
    nest_like,
    two_worlds,
    write_corpus,
)
from torch_geometric.data import Batch

from gnnperf.cli.train import train as train_verb
from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch
from gnnperf.nests import nest_graph
from gnnperf.nn import Bundle, EncoderConfig, HeadConfig, load_checkpoint, scheduled_programs
from gnnperf.retrieval import nearest, rank
from gnnperf.store import Store
from gnnperf.training import (
    CorpusDataModule,
    RetrievalModule,
    TrainingRun,
    fit_all,
    load_corpus,
    split_by_family,
    train,
)
from gnnperf.training.trials import by_nest

CONFIG = Path(__file__).parents[2] / "configs/models/first.yaml"
SMALL = ["--model.encoder.width=32", "--model.encoder.layers=2"]
SPLIT = ["--data.validation_families=[map_add,reduce_mul]", "--data.test_families=[map_exp,reduce_exp]"]


@pytest.fixture(autouse=True)
def small_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, runs below tmp_path, no way to a W&B server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gnnperf"])
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def arguments(tmp_path: Path, *more: str) -> list[str]:
    corpus = two_worlds(tmp_path / "corpus")
    return ["-c", str(CONFIG), f"--data.corpora=[{corpus}]", *SPLIT, *SMALL, *more]


def fit(tmp_path: Path, *more: str) -> TrainingRun:
    return train(["fit", *arguments(tmp_path, "--trainer.max_epochs=8", *more)])


def test_fit_leaves_a_bundle_and_logs(tmp_path: Path) -> None:
    run = fit(tmp_path)
    assert run.bundle_folder is not None
    bundle = load_checkpoint(run.bundle_folder, Bundle)
    assert bundle.encoder_id == run.encoder_id
    assert bundle.embed([nest_like([8])]).shape == (1, 64)
    assert bundle.provenance.figures == run.figures
    assert run.figures["val/transfer_regret@1"] <= run.figures["val/random_regret@1"]
    assert 0.25 / 0.9 < run.figures["val/efficiency@1"] <= run.figures["val/efficiency@3"] == 1.0
    assert bundle.provenance.seeds == [0]
    assert bundle.provenance.corpus["training_nests"] == 12
    with (run.folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    losses = [float(row["train/loss"]) for row in rows if row["train/loss"]]
    assert len(losses) == run.epochs == 8
    assert losses[-1] < losses[0]
    assert (run.folder / "config.yaml").is_file()
    assert (run.folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((tmp_path / "runs/first/wandb").glob("offline-run-*/run-*.wandb"))


def test_the_bundle_is_enough_to_retrieve_with(tmp_path: Path) -> None:
    """All that was measured is in its store, where its own encoder puts it."""
    run = fit(tmp_path, "--trainer.logger=false")
    assert run.bundle_folder is not None
    bundle, store = load_checkpoint(run.bundle_folder, Bundle), Store.open(run.bundle_folder / "store")
    assert (store.info().nests, store.info().records) == (24, 48)
    assert store.stale(bundle.encoder_id) == []
    asked = small_nest(96, 48, reduction=True)
    graph = nest_graph(asked)
    neighbours = nearest([store], bundle.embed([graph])[0], 8, bundle.encoder_id, DEVICE)
    assert len(neighbours) == 8
    recipes = [RECIPES["tile"], RECIPES["stream"]]
    programs = [p for p in scheduled_programs(asked, graph, recipes) if p is not None]
    scores = dict(zip(recipes, bundle.score(programs), strict=True))
    found = rank(neighbours, 2, lambda asked: np.array([scores[recipe] for recipe in asked]))
    assert {candidate.schedule for candidate in found} == set(recipes)


def test_a_run_that_ended_goes_on(tmp_path: Path) -> None:
    """From its last checkpoint, to more epochs; nothing but plain values is in it."""
    small = ("--trainer.max_epochs=2", "--data.trial_nests=4", "--data.batch_size=8")
    run = fit(tmp_path, *small)
    last = run.folder / "checkpoints" / "last.ckpt"
    state = torch.load(last, weights_only=True)
    kept = state["hyper_parameters"]
    assert (kept["encoder"]["width"], kept["encoder"]["layers"]) == (32, 2)
    assert kept["head"]["numbers_width"] == 128
    assert (kept["learning_rate"], kept["frozen_encoder"]) == (2e-3, False)
    more = fit(tmp_path, *small[1:], "--trainer.max_epochs=4", f"--ckpt_path={last}")
    assert (run.epochs, more.epochs) == (2, 4)
    assert more.bundle_folder is not None and more.encoder_id != run.encoder_id
    with (more.folder / "metrics.csv").open() as file:
        epochs = {int(row["epoch"]) for row in csv.DictReader(file)}
    assert epochs - {4} == {2, 3}  # and the validation after the last


def test_a_seed_gives_the_same_encoder_again(tmp_path: Path) -> None:
    first, second, other = (
        fit(
            tmp_path, f"--seed_everything={seed}", "--trainer.logger=false", f"--trainer.default_root_dir={i}"
        )
        for i, seed in enumerate((1, 1, 2))
    )
    assert first.encoder_id == second.encoder_id != other.encoder_id


def test_validate_and_test_replay_a_checkpoint(tmp_path: Path) -> None:
    run = fit(tmp_path)
    checkpoint = f"--ckpt_path={run.folder / 'checkpoints/best.ckpt'}"
    validation = train(["validate", *arguments(tmp_path, checkpoint)])
    assert validation.figures["val/loss"] == pytest.approx(run.figures["val/loss"], rel=1e-4)
    assert validation.bundle_folder is None
    assert "test/transfer_regret@3" in train(["test", *arguments(tmp_path, checkpoint)]).figures


def test_json_is_one_document_on_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ["fit", *arguments(tmp_path, "--trainer.max_epochs=1", "--trainer.logger=false"), "--json"]
    train_verb.main(args, standalone_mode=False)
    document = json.loads(capfd.readouterr().out)
    assert document["subcommand"] == "fit"
    assert document["epochs"] == 1
    assert Path(document["bundle"], "metadata.json").is_file()


def test_help_is_cheap() -> None:
    result = CliRunner().invoke(train_verb, ["--help"])
    assert result.exit_code == 0
    assert "gnnperf train fit -c configs/models/first.yaml" in result.output


def test_help_of_a_subcommand_is_lightnings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        train_verb.main(["fit", "--help"], standalone_mode=False)
    assert exit_.value.code == 0
    assert "--data.validation_families" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--data.validation_families=[map_add,stencil]"], "expected families among .*, got stencil"),
        (["--data.test_families=[map_add]"], "map_add is held out for validation and for the test"),
        (["--data.corpora=[nowhere]"], "expected a corpus folder .*, got nowhere"),
        (["--data.corpora=[]"], "expected the folder of a corpus of loop nests, got none"),
        (["--data.batch_size=many"], "batch_size.*many.*; see `gnnperf train fit --help`"),
        (["--trainer.max_epochs=many"], "max_epochs.*Given value: many; see `gnnperf train fit --help`"),
        (["--model.depth=3"], "depth"),
        (["--model.encoder.heads=5"], "expected heads that divide width=32, got heads=5"),
        (["--model.encoder.width=0"], "expected width of at least 1, got width=0"),
        (["--model.learning_rate=0"], "expected a learning_rate above 0, got 0"),
        (["--model.numbers_learning_rate=0"], "expected a numbers_learning_rate above 0, got 0"),
        (["--data.batch_size=0"], "expected a batch_size of at least 1, got 0"),
        (["--data.trial_nests=0"], "expected a trial_nests of at least 1, got 0"),
        (["--data.trials=1"], "expected at least 2 trials, which are compared, got 1"),
        (["--trainer.max_epochs=-7"], "max_epochs.*-7; see `gnnperf train fit --help`"),
        (["-c", "missing.yaml"], "missing.yaml"),
    ],
)
def test_user_mistakes_are_one_line(tmp_path: Path, args: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        fit(tmp_path, *args)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "`test` needs a trained encoder"),
        (["--ckpt_path=none.ckpt"], "expected a checkpoint file"),
        ([f"--ckpt_path={__file__}"], "expected a checkpoint file"),
    ],
)
def test_an_untrained_encoder_is_not_tested(tmp_path: Path, more: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train(["test", *arguments(tmp_path, *more)])


def test_families_never_cross_the_split(tmp_path: Path) -> None:
    data = CorpusDataModule([str(two_worlds(tmp_path))], ["map_add"], ["reduce_exp"])
    data.setup()
    families = {s: {data.corpus.nests[i].family for i in index} for s, index in data.splits.items()}
    assert families["validation"] == {"map_add"}
    assert families["test"] == {"reduce_exp"}
    assert not families["train"] & {"map_add", "reduce_exp"}
    assert sum(map(len, data.splits.values())) == len(data.corpus.nests)


def test_a_split_needs_nests_on_both_sides() -> None:
    with pytest.raises(InputError, match="at least 2 nests to train on and 1 to validate on, got 2 and 0"):
        split_by_family(["a", "a"], [], [])
    with pytest.raises(InputError, match="got 1 and 2; hold out fewer families"):
        split_by_family(["a", "b", "b"], ["b"], [])


def test_nests_that_cannot_be_scheduled_are_not_enough(tmp_path: Path) -> None:
    """Their graphs are known, but not their loops."""
    graphs = [nest_like([8 * (i + 1)]) for i in range(4)]
    lines = [measurement(graph.digest, s, 0.5) for graph in graphs for s in ("tile", "stream")]
    corpus = write_corpus(tmp_path / "bare", [nest(g, f"f{i}") for i, g in enumerate(graphs)], lines)
    bare = [f"--data.corpora=[{corpus}]", "--data.validation_families=[f0]", "--data.test_families=[]"]
    with pytest.raises(InputError, match=r"expected training nests in .*bare measured with .*, got none"):
        fit(tmp_path, *bare)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_frozen_encoder_stays_as_it_was_drawn(frozen: bool, tmp_path: Path) -> None:
    """But for the statistics of its inputs; the head learns all the same."""

    class Watched(RetrievalModule):
        def on_fit_start(self) -> None:
            self.drawn = {name: weight.clone() for name, weight in self.named_parameters()}
            super().on_fit_start()

    corpus = load_corpus(two_worlds(tmp_path, sizes=(64,)))
    settings: dict[str, Any] = {"encoder": EncoderConfig(width=8, layers=1), "frozen_encoder": frozen}
    module, _ = fit_all(corpus, 0, epochs=2, module=Watched, **settings)
    assert isinstance(module, Watched) and not module.training
    same = {name: torch.equal(weight, module.drawn[name]) for name, weight in module.named_parameters()}
    assert {same[name] for name in same if name.startswith("encoder.")} == {frozen}
    assert {same[name] for name in same if name.startswith("head.")} == {False}
    assert module.encoder.node_scale.mean.abs().max() > 0


def test_training_on_everything_leaves_the_random_numbers_alone(tmp_path: Path) -> None:
    """The same seed, the same network; what is drawn afterwards does not depend on it."""
    corpus = load_corpus(two_worlds(tmp_path, sizes=(64,)))
    small: dict[str, Any] = {"encoder": EncoderConfig(width=8, layers=1)}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = (fit_all(corpus, seed, epochs=1, **small)[0].state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.numbers.1.weight"], other["head.numbers.1.weight"])


def test_a_handful_of_nests_is_memorised(tmp_path: Path) -> None:
    """Tastes that no feature suggests are learned all the same: the losses fall to their floors."""
    nests = [small_nest(8 * (i + 1), 16, operation=op) for i, op in enumerate(["add", "exp"] * 4)]
    group = [0, 0, 1, 1, 0, 1, 1, 0]
    liked = ("stream", "tile")  # trials are in the order of their schedules' names
    tasks = [held_nest(found, f"f{i}") for i, found in enumerate(nests)]
    lines = [
        measurement(task["task"], name, 0.25 if name == liked[wanted] else 0.75)
        for task, wanted in zip(tasks, group, strict=True)
        for name in liked
    ]
    data = CorpusDataModule([str(write_corpus(tmp_path, tasks, lines))], ["f7"])
    data.setup()
    torch.manual_seed(0)
    module = RetrievalModule(
        EncoderConfig(width=32, layers=2, dropout=0.0), HeadConfig(dropout=0.0, numbers_dropout=0.0)
    )
    batch, trials = data.batch(range(8)), Batch.from_data_list(list(chain(*data.trials)))
    module.encoder.fit_scales(GraphBatch.of(trials), trials.node_costs, batch.graphs)
    module.head.fit_scales(trials.node_kind, trials.node_costs, trials.batch, trials.facts)
    optimiser = torch.optim.AdamW(module.parameters(), lr=3e-3)
    for _ in range(400):
        embedding = module(batch.graphs)
        contrastive = module.contrastive(embedding @ embedding.T, batch.regret)
        efficiency = module.efficiency_loss(trials)
        optimiser.zero_grad()
        (contrastive + efficiency).backward()
        optimiser.step()
    assert contrastive.item() - module.contrastive.entropy(batch.regret).item() < 0.02
    similarity = (embedding @ embedding.T).detach().numpy() - 2 * np.eye(8)
    assert [group[j] for j in similarity.argmax(1)] == group
    measured = by_nest(trials.log_efficiency, trials.nest)
    floor = float(module.efficiency(measured, measured))
    for judged in by_nest(module.judgements(trials).detach(), trials.nest):
        assert judged.argmax(1).tolist() == group
        assert float(module.efficiency(judged, measured)) - floor < 0.02
        # Differences are in nats: a schedule that takes three times as long is ln 3 below.
        apart = (judged[:, 0] - judged[:, 1]).abs()
        torch.testing.assert_close(apart, torch.full((8,), float(np.log(3))), atol=0.2, rtol=0)
