from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from gnnperf.measure.arrays import aligned_empty
from gnnperf.measure.team_copy import SMALL_BYTES, team_copy, team_copy_library


@pytest.mark.parametrize("nbytes", [0, 1, SMALL_BYTES - 1, SMALL_BYTES, SMALL_BYTES + 7, 1_000_003])
@pytest.mark.parametrize("compiled", [False, True])
def test_every_byte_is_copied_and_no_other(nbytes: int, compiled: bool) -> None:
    library = team_copy_library() if compiled else None
    assert compiled == (library is not None)
    what = np.random.default_rng(0).integers(0, 255, nbytes, np.uint8, endpoint=True)
    around = aligned_empty(nbytes + 128)
    around[:] = 77
    team_copy(library)(around[64 : 64 + nbytes], what)
    np.testing.assert_array_equal(around[64 : 64 + nbytes], what)
    assert (around[:64] == 77).all()
    assert (around[64 + nbytes :] == 77).all()


def test_without_a_compiler_one_thread_copies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GNNPERF_CXX", str(tmp_path / "none"))
    assert team_copy_library() is None
    assert team_copy(None) is np.copyto


def test_it_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path))
    found: list[str | None] = []
    threads = [threading.Thread(target=lambda: found.append(team_copy_library())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (path,) = set(found)
    assert path is not None
    before = Path(path).stat()
    assert team_copy_library() == path
    assert Path(path).stat().st_mtime_ns == before.st_mtime_ns
    assert [p.name for p in Path(path).parent.iterdir()] == [Path(path).name]
