"""A corpus as the encoder learns from it: loop nests, and what was measured on them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gnnperf.corpus.reader import read_corpus
from gnnperf.corpus.record import CorpusRecord, CorpusTask
from gnnperf.devices import vectors_of
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.nests import LoopNest

if TYPE_CHECKING:
    from gnnperf.training.efficiency import EfficiencyTable
    from gnnperf.training.scheduled import ScheduledNests


@dataclass(frozen=True)
class CorpusNest:
    """One nest: what is embedded (its graph), and where it comes from. `baseline_s` is in seconds, `symbols`
    are the sizes that the kernel was specialised to. `nest` is what recipes were applied to, None where the
    corpus has the graph alone; `trip_counts` are the measured means of its loops whose bounds depend on data,
    by iterator."""

    digest: str
    kernel: str
    family: str
    frontend: str
    graph: ProgramGraph
    baseline: str
    baseline_s: float
    symbols: Mapping[str, float] = field(default_factory=dict)
    nest: LoopNest | None = None
    trip_counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Corpus:
    """Nests and their measurements on one device.

    Attributes:
        nests: in order of first appearance; digests are unique.
        measurements: digest -> schedule id -> measurement (the last one, where it was repeated).
        device: fingerprint of the device everything was measured on.
        digest: of the schedules and their times: which corpus a model was trained on.
        scheduled: what recipes make of the nests; a part of a corpus shares it with the whole.
    """

    nests: tuple[CorpusNest, ...]
    measurements: Mapping[str, Mapping[str, CorpusRecord]]
    device: str
    digest: str
    scheduled: ScheduledNests = field(compare=False, repr=False)

    @property
    def families(self) -> list[str]:
        return sorted({nest.family for nest in self.nests})

    @property
    def measurement_count(self) -> int:
        return sum(len(of_nest) for of_nest in self.measurements.values())

    @cached_property
    def regret(self) -> NDArray[np.float32]:
        """f32[n, n], see `gnnperf.training.regret.regret_matrix`."""
        from gnnperf.training.regret import regret_matrix

        return regret_matrix([self.measurements[nest.digest] for nest in self.nests])

    @cached_property
    def efficiency(self) -> EfficiencyTable:
        """Of every recipe on every nest."""
        from gnnperf.training.efficiency import efficiency_table

        return efficiency_table([self.measurements[nest.digest] for nest in self.nests])


def load_corpus(path: Path | str, device: str | None = None) -> Corpus:
    """Read a corpus folder of loop nests.

    Args:
        path: the folder.
        device: fingerprint of the device to read; needed only where the corpus holds several.

    Raises:
        InputError: no such corpus, not one of nests, a damaged line, or several devices and none chosen.
    """
    return load_corpora([path], device)


def load_corpora(paths: Sequence[Path | str], device: str | None = None) -> Corpus:
    """Read several corpora as one. A nest in two of them is that of the first, with the measurements of both.
    Arguments and errors are as of `load_corpus`; InputError, too, where there is no path, or the corpora were
    measured on unlike devices."""
    if not paths:
        raise InputError(
            "expected the folder of a corpus of loop nests, got none; give one that was collected"
        )
    from gnnperf.training.scheduled import ScheduledNests  # imports torch

    found = [read_corpus(Path(path), device) for path in paths]
    if len(devices := sorted({corpus.device for corpus in found})) > 1:
        raise InputError(
            f"expected corpora of one device, got {' and '.join(devices)}; leave some out, times do not "
            "compare"
        )
    nests: dict[str, CorpusNest] = {}
    measurements: dict[str, dict[str, CorpusRecord]] = {}
    for corpus in found:
        for name, task in corpus.tasks.items():
            nests.setdefault(name, _nest(corpus.folder, task))
            measurements[name] = {**measurements.get(name, {}), **corpus.records[name]}
    digest = found[0].digest
    if len(found) > 1:
        digest = hashlib.sha256(" ".join(corpus.digest for corpus in found).encode()).hexdigest()[:16]
    scheduled = ScheduledNests(vectors_of(devices[0]))
    return Corpus(tuple(nests.values()), measurements, devices[0], digest, scheduled)


def _nest(folder: Path, task: CorpusTask) -> CorpusNest:
    if task.graph is None:
        raise InputError(
            f"expected a corpus of loop nests with their graphs, got {folder} with {task.name}, which is of "
            f"the frontend {task.frontend}; give another corpus"
        )
    return CorpusNest(
        task.task, task.name, task.family, task.frontend, task.graph, task.baseline, task.baseline_s,
        task.parameters, task.nest, task.trip_counts,
    )  # fmt: skip
