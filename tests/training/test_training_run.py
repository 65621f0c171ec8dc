"""`gnnperf train` on a small synthetic corpus, and what the network learns from it."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from helpers.synthetic import measurement, nest, nest_like, two_worlds, write_corpus

from gnnperf.cli.train import train as train_verb
from gnnperf.errors import InputError
from gnnperf.nn import Bundle, EncoderConfig, HeadConfig, load_checkpoint
from gnnperf.training import CorpusDataModule, RetrievalModule, TrainingRun, split_by_family, train

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
    return ["-c", str(CONFIG), f"--data.corpus={corpus}", *SPLIT, *SMALL, *more]


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
        (["--data.corpus=nowhere"], "expected a corpus folder .*, got nowhere"),
        (["--data.batch_size=many"], "batch_size.*many.*; see `gnnperf train fit --help`"),
        (["--trainer.max_epochs=many"], "max_epochs.*Given value: many; see `gnnperf train fit --help`"),
        (["--model.depth=3"], "depth"),
        (["--model.encoder.heads=5"], "expected heads that divide width=32, got heads=5"),
        (["--model.encoder.width=0"], "expected width of at least 1, got width=0"),
        (["--model.learning_rate=0"], "expected a learning_rate above 0, got 0"),
        (["--data.batch_size=0"], "expected a batch_size of at least 1, got 0"),
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
    data = CorpusDataModule(str(two_worlds(tmp_path)), ["map_add"], ["reduce_exp"])
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


def test_a_handful_of_nests_is_memorised(tmp_path: Path) -> None:
    """Partners that no feature suggests are learned all the same: the loss falls to its floor."""
    graphs = [nest_like([8 * (i + 1), 16], operation=op) for i, op in enumerate(["add", "exp"] * 4)]
    group = [0, 0, 1, 1, 0, 1, 1, 0]
    lines = [
        measurement(graph.digest, f"s{g}", 0.25 if g == group[i] else 0.75)
        for i, graph in enumerate(graphs)
        for g in (0, 1)
    ]
    corpus = write_corpus(tmp_path, [nest(g, f"f{i}") for i, g in enumerate(graphs)], lines)
    data = CorpusDataModule(str(corpus), ["f7"])
    data.setup()
    torch.manual_seed(0)
    module = RetrievalModule(
        EncoderConfig(width=32, layers=2, dropout=0.0), HeadConfig(dropout=0.0, effect_dropout=0.0)
    )
    batch = data.batch(range(8))
    module.encoder.fit_scales(batch.graphs, batch.profile)
    optimiser = torch.optim.AdamW(module.parameters(), lr=3e-3)
    module.head.fit_scales(data.schedules, data.effects)
    for _ in range(400):
        states = module(batch)
        contrastive, efficiency = module.losses(states, data, batch)
        optimiser.zero_grad()
        (contrastive + efficiency).backward()
        optimiser.step()
    assert contrastive.item() - module.contrastive.entropy(batch.regret).item() < 0.02
    embedding = torch.nn.functional.normalize(module.encoder.project(states), dim=1)
    similarity = (embedding @ embedding.T).detach().numpy() - 2 * np.eye(8)
    assert [group[j] for j in similarity.argmax(1)] == group
    by_graph, by_effects = module.judgements(states, data, data.pair)
    assert by_graph.argmax(1).tolist() == group  # schedules s0 and s1
    assert by_effects.argmax(1).tolist() == group
