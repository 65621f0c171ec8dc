"""Training: the corpus of measurements, and the encoder that learns from it.

Names are imported when they are used: reading a corpus must not load Lightning, which takes seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnperf.training.corpus import Corpus, CorpusNest, load_corpora, load_corpus
    from gnnperf.training.data import CorpusDataModule, NestBatch, split_by_family
    from gnnperf.training.loggers import OfflineWandbLogger
    from gnnperf.training.metrics import oracle_regret, random_regret, transfer_regret, transfer_regrets
    from gnnperf.training.mining import PairBatchSampler
    from gnnperf.training.module import RetrievalModule
    from gnnperf.training.refit import fit_all
    from gnnperf.training.regret import regret_matrix
    from gnnperf.training.run import TrainCLI, TrainingRun, bundle_of, train

_MODULES = {
    "corpus": ("Corpus", "CorpusNest", "load_corpora", "load_corpus"),
    "data": ("CorpusDataModule", "NestBatch", "split_by_family"),
    "loggers": ("OfflineWandbLogger",),
    "metrics": ("oracle_regret", "random_regret", "transfer_regret", "transfer_regrets"),
    "mining": ("PairBatchSampler",),
    "module": ("RetrievalModule",),
    "refit": ("fit_all",),
    "regret": ("regret_matrix",),
    "run": ("TrainCLI", "TrainingRun", "bundle_of", "train"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Corpus",
    "CorpusDataModule",
    "CorpusNest",
    "NestBatch",
    "OfflineWandbLogger",
    "PairBatchSampler",
    "RetrievalModule",
    "TrainCLI",
    "TrainingRun",
    "bundle_of",
    "fit_all",
    "load_corpora",
    "load_corpus",
    "oracle_regret",
    "random_regret",
    "regret_matrix",
    "split_by_family",
    "train",
    "transfer_regret",
    "transfer_regrets",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
