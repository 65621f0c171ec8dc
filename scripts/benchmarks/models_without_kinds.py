"""Cost models that have learned nothing of an operator kind, for transfer to kinds nobody tuned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.errors import InputError
from gnnperf.evaluation.trace_ranking import RankingSettings, folds_of
from gnnperf.nn import load_checkpoint, save_checkpoint
from gnnperf.nn.traces import TensorBundle
from gnnperf.training.traces.bundle import fit_bundle
from gnnperf.training.traces.corpus import HELD_OUT, load_tensor_corpus
from gnnperf.training.traces.data import SchedulePool, pools_of
from gnnperf.training.traces.features import corpus_features, default_cache


@dataclass
class ModelsWithoutKinds:
    """Trains a model without a kind, and the others of its fold, when it is first asked for. The folds are
    those of the ranking evaluation with the same settings.

    cache: of features of schedules. folder: where models are kept for the next time, or None.
    """

    corpus: MeasuredTasks
    cache: Path
    folder: Path | None = None
    settings: RankingSettings = field(default_factory=RankingSettings)
    _models: dict[int, TensorBundle] = field(default_factory=dict)
    _pools: Sequence[SchedulePool] | None = None

    @staticmethod
    def of(corpus: Path, cache: Path | None, output: Path | None) -> ModelsWithoutKinds:
        """Of the corpus in a folder, kept in a folder of results. Raises InputError: no corpus there."""
        folder = output / "models" if output else None
        return ModelsWithoutKinds(load_tensor_corpus(corpus), cache or default_cache(), folder)

    def without(self, kind: str, notify: Callable[[str], None] = lambda _: None) -> TensorBundle:
        """A model that was trained without schedules of the kind. Raises InputError where nothing is left
        to learn from, or where the folder cannot be written."""
        folds = folds_of([w.family for w in self.corpus.tasks.values()], self.settings)
        number = next((n for n, fold in enumerate(folds) if kind in fold), len(folds))
        held_out = folds[number] if number < len(folds) else frozenset[str]()
        if number not in self._models:
            path = self.folder and self.folder / f"without-{number}"
            self._models[number] = self._kept(path) or self._train(held_out, path, notify)
        return self._models[number]

    def _kept(self, path: Path | None) -> TensorBundle | None:
        """A model of the same corpus from an earlier run."""
        try:
            model = load_checkpoint(path, TensorBundle) if path else None
        except InputError:  # none yet, or half written
            return None
        return model if model and model.provenance.corpus.get("digest") == self.corpus.digest else None

    def _train(
        self, held_out: frozenset[str], path: Path | None, notify: Callable[[str], None]
    ) -> TensorBundle:
        notify(f"training a cost model without {', '.join(sorted(held_out)) or 'anything held out'}")
        if self._pools is None:
            self._pools = pools_of(self.corpus, corpus_features(self.corpus, self.cache))
        known = [p for p in self._pools if p.workload.split != HELD_OUT and p.workload.family not in held_out]
        if not known:
            kinds = ", ".join(sorted(held_out))
            raise InputError(f"expected a corpus with kinds besides {kinds}; collect more")
        model = fit_bundle(self.corpus, known, self.settings.fit, [self.settings.seed])
        if path:
            save_checkpoint(path, model)
        return model
