"""Neighbours of a nest in one or several stores, and whether they are near enough to trust."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.errors import InputError
from gnnperf.retrieval.confidence import Confidence
from gnnperf.store import Neighbour, Store

if TYPE_CHECKING:
    from gnnperf.nn import Bundle


@dataclass(frozen=True)
class Calibration:
    """When to trust a transfer.

    max_distance: cosine distance of the nearest neighbour beyond which nothing is tried. confidence: how sure
    to be of what was measured; None where that was never learned.
    """

    max_distance: float
    confidence: Confidence | None = None

    @staticmethod
    def of(bundle: Bundle) -> Calibration:
        """As it was released with a bundle. InputError where there is none, or it is damaged."""
        raw = bundle.calibration
        if raw is None:
            raise InputError(
                "expected a checkpoint with a calibration, got one without; "
                "`gnnperf train release loop-nests` makes one"
            )
        try:
            confidence = raw.get("confidence")
            return Calibration(
                float(raw["max_distance"]), None if confidence is None else Confidence.from_dict(confidence)
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"damaged calibration of a checkpoint: {error}; restore or retrain it") from None

    def to_dict(self) -> dict[str, Any]:
        """JSON form, which a bundle keeps."""
        confidence = None if self.confidence is None else self.confidence.to_dict()
        return {"max_distance": self.max_distance, "confidence": confidence}


def nearest(
    stores: Sequence[Store], embedding: NDArray[np.float32], k: int, encoder_id: str, fingerprint: str,
    exclude: Collection[str] = (),
) -> list[Neighbour]:  # fmt: skip
    """The k nearest nests over all stores, nearest first; a nest in several stores keeps all its records.

    Of a store without a record of a device with this fingerprint, those of its kin are used: of the same
    architecture, with other vectors. What is good there is tried here, and measured like all else. exclude:
    digests of nests to pass over."""
    merged: dict[str, Neighbour] = {}
    for store in stores:
        device = stand_in(fingerprint, store.devices)
        for found in store.nearest(embedding, k, encoder_id, device, exclude):
            known = merged.get(found.nest.digest)
            if known is None:
                merged[found.nest.digest] = found
                continue
            records = {r.record_id: r for r in (*known.records, *found.records)}
            merged[found.nest.digest] = Neighbour(found.nest, found.distance, tuple(records.values()))
    return sorted(merged.values(), key=lambda n: (n.distance, n.nest.digest))[:k]


def stand_in(fingerprint: str, known: Sequence[str]) -> str:
    """Whose records are used: those of the CPU itself where they are known, else of the first of its kin."""
    kin = sorted(device for device in known if device.rpartition("/")[0] == fingerprint.rpartition("/")[0])
    lent = fingerprint.startswith("cpu/") and fingerprint not in known and kin
    return kin[0] if lent else fingerprint
