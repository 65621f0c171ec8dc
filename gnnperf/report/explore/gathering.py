"""What the map shows of each nest, read from one or several stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32

from gnnperf.graph import ProgramGraph
from gnnperf.nn import Bundle
from gnnperf.report.explore.picture import Picture, picture
from gnnperf.store import Nest, Record, Store

_BATCH = 256


@dataclass(frozen=True, slots=True, eq=False)
class MappedNest:
    """A point of the map.

    embedding: f32[d], norm 1. best: the "ok" record with the highest speedup, over all devices; None where
    there is none. measurements: number of records, failures among them.
    """

    nest: Nest
    picture: Picture
    embedding: Float32[np.ndarray, " d"]
    best: Record | None
    measurements: int


@dataclass(slots=True)
class _Seen:
    nest: Nest
    picture: Picture
    graph: ProgramGraph | None  # of a nest that is still to be embedded
    embedding: Float32[np.ndarray, " d"] | None
    best: Record | None = None
    record_ids: set[str] = field(default_factory=set)

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            self.record_ids.add(record.record_id)
            if (record.speedup or 0.0) > (self.best.speedup or 0.0 if self.best else 0.0):
                self.best = record


def gather(
    stores: Sequence[Store], bundle: Bundle, advance: Callable[[], object] = lambda: None
) -> list[MappedNest]:
    """All nests of some stores, each once, in an order that does not depend on that of the stores.

    What the bundle's encoder has not embedded yet is embedded here; the stores stay as they are.
    `advance` is called once for every nest of a store.
    """
    found: dict[str, _Seen] = {}
    for store in stores:
        for entry in store.entries(bundle.encoder_id):
            seen = found.get(entry.nest.digest)
            if seen is None:
                graph = ProgramGraph.from_json(entry.graph_json)
                kept = graph if entry.embedding is None else None
                seen = _Seen(entry.nest, picture(graph), kept, entry.embedding)
                found[entry.nest.digest] = seen
            elif seen.embedding is None:
                seen.embedding = entry.embedding
            seen.add(entry.records)
            advance()
    _embed([seen for seen in found.values() if seen.embedding is None], bundle)
    mapped = [
        MappedNest(seen.nest, seen.picture, seen.embedding, seen.best, len(seen.record_ids))
        for seen in found.values()
        if seen.embedding is not None
    ]
    return sorted(mapped, key=lambda m: (m.nest.family, m.nest.kernel, m.picture.sizes, m.nest.digest))


def _embed(seen: Sequence[_Seen], bundle: Bundle) -> None:
    for start in range(0, len(seen), _BATCH):
        batch = seen[start : start + _BATCH]
        graphs = [one.graph for one in batch if one.graph is not None]
        for one, vector in zip(batch, bundle.embed(graphs), strict=True):
            one.embedding = vector
