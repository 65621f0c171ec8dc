"""DaCe run quietly: it leaves nothing behind, and what nobody reads is not made."""

from __future__ import annotations

from pathlib import Path

import dace
import pytest
from dace.sdfg import state as dace_state
from dace.sdfg.nodes import LibraryNode

from gnnperf.frontends.dace.quiet import quiet_dace


def test_settings_and_functions_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = (("store_history",), ("progress",), ("library", "blas", "default_implementation"))
    before = [dace.Config.get(*name) for name in names], dace_state._getdebuginfo
    with quiet_dace():
        assert Path.cwd() != tmp_path
    with pytest.raises(ZeroDivisionError), quiet_dace():
        1 / 0  # noqa: B018
    assert ([dace.Config.get(*name) for name in names], dace_state._getdebuginfo) == before
    assert Path.cwd() == tmp_path and not list(tmp_path.iterdir())


def test_nodes_know_whose_line_made_them() -> None:
    """As with DaCe's own way, which takes much longer."""
    sdfg = dace.SDFG("lines")
    sdfg.add_array("a", [2], dace.float64)
    state = sdfg.add_state()
    found = []
    for _ in range(2):
        with quiet_dace():
            found.append(state.add_read("a").debuginfo)
        found.append(state.add_read("a").debuginfo)
    assert {Path(place.filename) for place in found} == {Path(__file__)}
    lines = [place.start_line for place in found]
    assert lines[1] == lines[0] + 1 and lines[:2] == lines[2:]
    known = dace.dtypes.DebugInfo(7)
    with quiet_dace():
        assert state.add_read("a", debuginfo=known).debuginfo is known


def test_no_history_is_kept_of_what_is_expanded() -> None:
    sdfg = dace.SDFG("total")
    sdfg.add_array("a", [8], dace.float64)
    sdfg.add_array("s", [1], dace.float64)
    state = sdfg.add_state()
    total = state.add_reduce("lambda x, y: x + y", None, 0)
    state.add_nedge(state.add_read("a"), total, dace.Memlet("a[0:8]"))
    state.add_nedge(total, state.add_write("s"), dace.Memlet("s[0]"))
    with quiet_dace():
        sdfg.expand_library_nodes()
    assert not any(isinstance(node, LibraryNode) for node, _ in sdfg.all_nodes_recursive())
    assert sdfg.orig_sdfg is None and not sdfg.transformation_hist
