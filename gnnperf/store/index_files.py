"""Where the lists of approximate search are kept: in memory, in the store's folder, in the user's cache.

They can be made again from the store at any time, so that nothing is lost with a file that is damaged,
missing, or cannot be written, and two processes that make them at once do no harm.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from gnnperf.devices import gnnperf_cache_dir
from gnnperf.documents import check_expansion, replacing
from gnnperf.errors import InputError
from gnnperf.store.searchable import Lists
from gnnperf.store.tables import is_local

FOLDER = "search"
"""In the store's folder. What is in it can be deleted at any time."""


_DAMAGED = (
    OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


class IndexFiles:
    """The lists of one store, by encoder and device."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._memory: dict[str, Lists] = {}

    def kept(self, encoder_id: str, fingerprint: str) -> Iterator[Lists]:
        """What was kept, in every place: newer ones may lie where the store cannot be written."""
        name = _digest(encoder_id, fingerprint)
        if name in self._memory:
            yield self._memory[name]
        for folder in self._folders():
            if (lists := _read(folder / f"{name}.npz")) is not None:
                yield lists

    def keep(self, encoder_id: str, fingerprint: str, lists: Lists) -> None:
        """Keep lists in memory, and in the first folder that can be written."""
        name = _digest(encoder_id, fingerprint)
        self._memory[name] = lists
        for folder in self._folders():
            with suppress(OSError):
                _write(folder / f"{name}.npz", lists)
                return

    def _folders(self) -> Iterator[Path]:
        place = self._location
        if is_local(place):
            place = str(Path(place).resolve())
            yield Path(place) / FOLDER
        with suppress(InputError):  # no cache can be written: memory has to do
            yield gnnperf_cache_dir() / FOLDER / _digest(place)


def _digest(*words: str) -> str:
    return hashlib.blake2b("\0".join(words).encode(), digest_size=12).hexdigest()


def _write(path: Path, lists: Lists) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(
            file, centroids=lists.centroids, probes=np.int64(lists.probes), row_ids=lists.row_ids,
            list_of=lists.list_of.astype(np.int32),
        )  # fmt: skip


def _read(path: Path) -> Lists | None:
    """None where there is no file, or it is damaged (the parts of a .npz have checksums)."""
    try:
        # Opened here: of a damaged file, np.load leaves what it opened open.
        with path.open("rb") as opened, zipfile.ZipFile(opened) as archive:
            check_expansion(archive, path.stat().st_size)
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            lists = Lists(
                file["centroids"].astype(np.float32),
                int(file["probes"]),
                file["row_ids"].astype(np.int64),
                file["list_of"].astype(np.int64),
            )
    except _DAMAGED:
        return None
    return lists if _is_sound(lists) else None


def _is_sound(lists: Lists) -> bool:
    count = len(lists.centroids) if lists.centroids.ndim == 2 else 0
    return bool(
        1 <= lists.probes <= count
        and np.isfinite(lists.centroids).all()
        and lists.row_ids.ndim == 1
        and lists.row_ids.shape == lists.list_of.shape
        and (np.diff(lists.row_ids) > 0).all()
        and ((lists.list_of >= 0) & (lists.list_of < count)).all()
    )
