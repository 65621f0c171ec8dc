"""Neighbours of a nest in one or several stores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gnnperf.store import Neighbour, Store


def nearest(
    stores: Sequence[Store], embedding: NDArray[np.float32], k: int, encoder_id: str, fingerprint: str,
    exclude: Collection[str] = (),
) -> list[Neighbour]:  # fmt: skip
    """The k nearest nests over all stores, nearest first; a nest in several stores keeps all its records.

    Records are of devices with this fingerprint, or of their kin: of the same architecture, with other
    vectors. What is good there is tried here, and measured like all else. exclude: digests of nests to pass
    over."""
    every = (
        found
        for store in stores
        for device in (fingerprint, *kin_of(fingerprint, store.devices))
        for found in store.nearest(embedding, k, encoder_id, device, exclude)
    )
    merged: dict[str, Neighbour] = {}
    for found in every:
        known = merged.get(found.nest.digest)
        if known is None:
            merged[found.nest.digest] = found
            continue
        records = {r.record_id: r for r in (*known.records, *found.records)}
        merged[found.nest.digest] = Neighbour(found.nest, found.distance, tuple(records.values()))
    return sorted(merged.values(), key=lambda n: (n.distance, n.nest.digest))[:k]


def kin_of(fingerprint: str, known: Iterable[str]) -> list[str]:
    """Those of the known CPUs whose schedules may suit a CPU: of its architecture, with other vectors."""
    architecture = fingerprint.rpartition("/")[0]
    if not architecture.startswith("cpu/"):
        return []
    return sorted(cpu for cpu in known if cpu.rpartition("/")[0] == architecture and cpu != fingerprint)
