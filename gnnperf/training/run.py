"""`gnnperf train`: LightningCLI around the module and the data module, and the checkpoint it leaves."""

from __future__ import annotations

import logging
import os
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from jsonargparse import ArgumentError
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI

from gnnperf.corpus.reader import read_corpus
from gnnperf.errors import InputError
from gnnperf.nn import Bundle, ModelProvenance, save_checkpoint
from gnnperf.training.curves import draw_curves
from gnnperf.training.data import CorpusDataModule
from gnnperf.training.loggers import close_wandb
from gnnperf.training.module import RetrievalModule

CHECKPOINT_WORDS = ("best", "last", "hpc", "registry")
"""What Lightning takes for --ckpt_path besides a file."""


@dataclass(frozen=True)
class TrainingRun:
    """What a run left behind.

    Attributes:
        subcommand: fit, validate or test.
        folder: of the run: config.yaml, metrics.csv, curves.png, checkpoints, bundle.
        bundle_folder: of the encoder with the best validation figures; None unless `fit`.
        encoder_id: of that encoder.
        figures: metrics by name, without those that could not be computed.
        epochs: that were trained.
    """

    subcommand: str
    folder: Path
    bundle_folder: Path | None
    encoder_id: str | None
    figures: Mapping[str, float]
    epochs: int


class TrainCLI(LightningCLI):
    """LightningCLI with one model and one data module; `fit` ends with a bundle.

    Options: `--model.*` (RetrievalModule), `--data.*` (CorpusDataModule), `--trainer.*`,
    `--seed_everything`, `-c config.yaml`.
    """

    def __init__(self, args: Sequence[str]) -> None:
        self.bundle: Bundle | None = None
        self.figures: dict[str, float] = {}
        strict = {"exit_on_error": False}
        super().__init__(
            RetrievalModule,
            CorpusDataModule,
            args=list(args),
            seed_everything_default=0,
            trainer_defaults={"use_distributed_sampler": False},  # `Share` does it
            auto_configure_optimizers=False,
            save_config_kwargs={"overwrite": True},
            parser_kwargs={**strict, **{name: dict(strict) for name in self.subcommands()}},
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Those of LightningCLI but `predict`: `gnnperf embed` does that."""
        return {name: skip for name, skip in LightningCLI.subcommands().items() if name != "predict"}

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Lightning opens the checkpoint next, and would not say which file it stumbles over. Without one,
        `validate` and `test` would report on an untrained encoder."""
        super().parse_arguments(parser, args)
        subcommand = self.config["subcommand"]
        checkpoint = self.config[subcommand].get("ckpt_path")
        if subcommand != "fit" and not checkpoint:
            raise InputError(f"`{subcommand}` needs a trained encoder, got none; give --ckpt_path FILE")
        if checkpoint and checkpoint not in CHECKPOINT_WORDS and not is_zipfile(checkpoint):
            raise InputError(f"expected a checkpoint file, got {checkpoint}; give one written by `fit`")

    @cached_property
    def folder(self) -> Path:
        """The folder of this run. All of several processes must ask for it: one of them tells the others."""
        return Path(self.trainer.log_dir or self.trainer.default_root_dir)

    def after_fit(self) -> None:
        """Export the best checkpoint, with the figures it reached on the validation families."""
        best = getattr(self.trainer.checkpoint_callback, "best_model_path", "")
        if best:
            checkpoint = torch.load(best, weights_only=True, map_location="cpu")
            self.model.load_state_dict(checkpoint["state_dict"])
        figures = self.trainer.validate(self.model, datamodule=self.datamodule, verbose=False)[0]
        self.figures = _finite(figures)
        folder = self.folder
        if not self.trainer.is_global_zero:
            return
        draw_curves(folder)
        seed = self._get(self.config, "seed_everything")
        self.bundle = bundle_of(self.model, self.datamodule, self.figures, seed)
        save_checkpoint(folder / "bundle", self.bundle, self._fill_store)

    def _fill_store(self, folder: Path) -> None:
        """With all that was measured, so that the bundle is enough to retrieve with."""
        from gnnperf.retrieval.from_corpus import fill_store
        from gnnperf.store import Store

        assert self.bundle is not None
        store = Store.open(folder, create=True)
        for path in self.datamodule.folders:
            fill_store(read_corpus(Path(path), self.datamodule.corpus.device), self.bundle, store)

    def after_validate(self) -> None:
        self.figures = _finite(self.trainer.callback_metrics)

    def after_test(self) -> None:
        self.figures = _finite(self.trainer.callback_metrics)


def bundle_of(
    model: RetrievalModule, data: CorpusDataModule, figures: Mapping[str, float], seed: int | None
) -> Bundle:
    """The networks of a trained module, with where they come from."""
    corpus = {
        "digest": data.corpus.digest,
        "device": data.corpus.device,
        "nests": len(data.corpus.nests),
        "measurements": data.corpus.measurement_count,
        "training_nests": len(data.splits["train"]),
        "held_out_families": data.held_out,
    }
    provenance = ModelProvenance(corpus, figures, () if seed is None else (seed,))
    return Bundle(model.encoder.eval(), model.head.eval(), provenance=provenance)


def train(args: Sequence[str]) -> TrainingRun:
    """Run `gnnperf train ARGS`, e.g. `train(["fit", "-c", "configs/models/first.yaml"])`.

    Raises:
        InputError: a bad option, config or corpus.
    """
    try:
        with quiet_libraries():
            cli = TrainCLI(args)
    except (ArgumentError, MisconfigurationException) as error:
        said = textwrap.shorten(str(error), 300, placeholder=" ...").rstrip(".")
        raise InputError(f"{said}; see `gnnperf train {args[0]} --help`") from error
    except RuntimeError as error:
        if "loading state_dict" not in str(error):
            raise
        raise InputError(
            "expected --ckpt_path of networks of the sizes that the configuration gives, got others; give "
            "the config.yaml of the run that wrote it"
        ) from error
    finally:
        close_wandb()
    folder = cli.folder
    if not cli.trainer.is_global_zero:
        raise SystemExit(0)  # Lightning started this process beside the first, which reports
    bundle = cli.bundle
    return TrainingRun(
        subcommand=str(cli.subcommand),
        folder=folder,
        bundle_folder=folder / "bundle" if bundle else None,
        encoder_id=bundle.encoder_id if bundle else None,
        figures=cli.figures,
        epochs=cli.trainer.current_epoch,
    )


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Leave out what Lightning and jsonargparse say to their callers, which is not for ours."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)  # what is below advertises
    os.environ.setdefault("JSONARGPARSE_DEPRECATION_WARNINGS", "off")  # Lightning's to heed
    with warnings.catch_warnings():
        # Loading is a lookup in memory: worker processes would only slow it down.
        warnings.filterwarnings("ignore", ".*does not have many workers.*")
        # Lightning with a newer torch than it was written for.
        warnings.filterwarnings("ignore", ".*isinstance.treespec, LeafSpec.* is deprecated.*")
        # A run that is resumed goes on in its folder, or in a new one.
        warnings.filterwarnings("ignore", "Checkpoint directory .* exists and is not empty.*")
        warnings.filterwarnings("ignore", "The dirpath has changed from .*")
        # The arguments of the verb are not Lightning's.
        warnings.filterwarnings("ignore", "LightningCLI's args parameter is intended.*")
        yield


def _finite(figures: Mapping[str, Any]) -> dict[str, float]:
    numbers = {name: float(value) for name, value in figures.items()}
    return {name: value for name, value in numbers.items() if value == value}
