"""What `gnnperf train release` makes: a checkpoint, with the figures that say what it is worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.documents import to_json
from gnnperf.errors import InputError
from gnnperf.nn.checkpoint import Model, check_replaceable, save_checkpoint

__all__ = ["Progress", "Trained", "check_settings", "read_evaluation", "release"]

LONGEST = 200
"""Characters of a setting in a message."""
Progress = Callable[[str, int], AbstractContextManager[Callable[..., None]]]
"""Shows progress: (what is done, steps) -> a context that gives `advance(steps, doing)`."""


@dataclass(frozen=True)
class Trained:
    """A model that is ready for its checkpoint.

    Attributes:
        model: with its provenance.
        rows: the table behind the figures of the provenance, one mapping with the same keys per row.
        fill_store: makes the schedule store in the folder that it is given; None for a model without one.
    """

    model: Model
    rows: Sequence[Mapping[str, Any]] = ()
    fill_store: Callable[[Path], object] | None = None


def release(train: Callable[[Progress], Trained], folder: Path, progress: Progress) -> Trained:
    """Train a model and write its checkpoint.

    Raises:
        InputError: the folder cannot be replaced, which is said before the training; or what it learns from
            is damaged.
    """
    check_replaceable(folder)
    trained = train(progress)
    save_checkpoint(folder, trained.model, trained.fill_store)
    return trained


def read_evaluation(path: Path, *benchmarks: str) -> dict[str, Any]:
    """What `gnnperf eval BENCHMARK --json` printed, of any of these. Raises InputError where the file is not
    that."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(document, dict) or document.get("benchmark") not in benchmarks:
        wanted = " or ".join(f"`gnnperf eval {name} --json`" for name in benchmarks)
        raise InputError(f"expected what {wanted} printed, got {path}")
    return document


def check_settings(path: Path, got: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raises InputError where an evaluation was made with other settings than a model is trained with: its
    figures and intervals would be those of another model."""
    for name, value in json.loads(to_json(expected)).items():
        if got.get(name) != value:
            raise InputError(
                f"{path}: expected an evaluation with {name} {_short(value)}, got {_short(got.get(name))}; "
                "evaluate what is released, with the same options"
            )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
