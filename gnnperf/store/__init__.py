"""The schedule store: nests, their embeddings, and what was measured on them; shared, searched, kept."""

from gnnperf.store.results import Changed, Neighbour, Refused, StoredNest, StoreInfo
from gnnperf.store.schema import SCHEMA_VERSION, Nest, Record
from gnnperf.store.store import Store

__all__ = [
    "SCHEMA_VERSION",
    "Changed",
    "Neighbour",
    "Nest",
    "Record",
    "Refused",
    "Store",
    "StoreInfo",
    "StoredNest",
]
