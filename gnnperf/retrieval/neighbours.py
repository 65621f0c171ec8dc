"""Neighbours of a nest in one or several stores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from gnnperf.store import Neighbour, Store


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
