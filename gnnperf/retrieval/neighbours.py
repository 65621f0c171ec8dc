"""Neighbours of a nest in one or several stores, and whether they are near enough to trust."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnnperf.errors import InputError
from gnnperf.retrieval.confidence import Confidence
from gnnperf.store import Neighbour, Store

CALIBRATION = "calibration.json"
"""Beside the weights in a bundle: when to trust what is retrieved with them."""


@dataclass(frozen=True)
class Calibration:
    """When to trust a transfer.

    max_distance: cosine distance of the nearest neighbour beyond which nothing is tried. confidence: how sure
    to be of what was measured; None where that was never learned.
    """

    max_distance: float
    confidence: Confidence | None = None

    @staticmethod
    def load(folder: Path) -> Calibration:
        """Of a bundle. InputError where the file is missing or damaged."""
        path = folder / CALIBRATION
        try:
            raw = json.loads(path.read_text())
            confidence = raw.get("confidence")
            return Calibration(
                float(raw["max_distance"]), None if confidence is None else Confidence.from_dict(confidence)
            )
        except FileNotFoundError:
            raise InputError(f"expected {path}, got no such file; calibrate the bundle again") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"cannot read {path}: {error}; calibrate the bundle again") from None

    def save(self, folder: Path) -> None:
        """Into a bundle, from where `load` reads it."""
        confidence = None if self.confidence is None else self.confidence.to_dict()
        document = {"max_distance": self.max_distance, "confidence": confidence}
        (folder / CALIBRATION).write_text(json.dumps(document, indent=1) + "\n")


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
