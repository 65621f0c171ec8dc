"""Neighbours of a nest in one or several stores, and whether they are near enough to trust."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnnperf.errors import InputError
from gnnperf.store import Neighbour, Store

CALIBRATION = "calibration.json"
"""Beside the weights in a bundle: how far a neighbour may be, from held-out families."""


@dataclass(frozen=True)
class Calibration:
    """max_distance: cosine distance beyond which transfer was not reliable on held-out families.

    confidence: share of held-out nests within that distance whose best transferred candidate of
    `k` came within 10% of the best schedule known.
    """

    max_distance: float
    confidence: float | None = None
    k: int = 3

    @staticmethod
    def load(folder: Path) -> Calibration:
        """Of a bundle. InputError where the file is missing or damaged."""
        path = folder / CALIBRATION
        try:
            raw = json.loads(path.read_text())
            return Calibration(float(raw["max_distance"]), raw.get("confidence"), int(raw.get("k", 3)))
        except FileNotFoundError:
            raise InputError(f"expected {path}, got no such file; calibrate the bundle again") from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"cannot read {path}: {error}; calibrate the bundle again") from None


def nearest(
    stores: Sequence[Store], embedding: NDArray[np.float32], k: int, encoder_id: str, fingerprint: str
) -> list[Neighbour]:
    """The k nearest nests over all stores, nearest first; a nest in several stores keeps all its records."""
    merged: dict[str, Neighbour] = {}
    for store in stores:
        for found in store.nearest(embedding, k, encoder_id, fingerprint):
            known = merged.get(found.nest.digest)
            if known is None:
                merged[found.nest.digest] = found
                continue
            records = {r.record_id: r for r in (*known.records, *found.records)}
            merged[found.nest.digest] = Neighbour(found.nest, found.distance, tuple(records.values()))
    return sorted(merged.values(), key=lambda n: (n.distance, n.nest.digest))[:k]
