"""What the store answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from gnnperf.store.schema import Nest, Record


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A nest near the query.

    distance: 1 - cosine similarity, in [0, 2].
    records: of devices with the query's fingerprint; "ok" ones by falling speedup, then the failures.
    """

    nest: Nest
    distance: float
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StoredNest:
    """All that a store knows of one nest.

    graph_json: the program graph.
    embedding: f32[d] of norm 1, by the encoder that was asked for; None where it has not embedded the nest.
    records: of all devices; "ok" ones by falling speedup, then the failures.
    """

    nest: Nest
    graph_json: str
    embedding: Float32[np.ndarray, " d"] | None
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """What a store does not believe. where: a line of a file, a nest or a record; reason: in a few words."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """How many rows were added, removed, written or checked: embeddings of nests, and records.

    refused: how many there were besides, which did not pass the checks. reasons: of the first of them.
    """

    nests: int
    records: int
    refused: int = 0
    reasons: tuple[Refused, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What is in a store: counts, also by encoder, device fingerprint, status and family.

    versions: number of the newest version of each table; every commit makes one.
    size_bytes: on disk; None where the store is not a local folder.
    """

    location: str
    schema_version: int
    nests: int
    records: int
    encoders: Mapping[str, int]
    devices: Mapping[str, int]
    statuses: Mapping[str, int]
    families: Mapping[str, int]
    versions: Mapping[str, int]
    size_bytes: int | None
