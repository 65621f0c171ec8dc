"""Files that users name are run where they lie, and nothing is left beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gnnperf.frontends.user_files import load_attribute


@pytest.mark.parametrize("writes", [True, False])
def test_no_bytecode_is_left_beside_them(
    writes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not writes)
    (tmp_path / "helper_of_kernels.py").write_text("value = 3\n")
    (tmp_path / "kernels.py").write_text("from helper_of_kernels import value\n")
    assert load_attribute(tmp_path / "kernels.py", "value", "kernel") == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["helper_of_kernels.py", "kernels.py"]
    assert sys.dont_write_bytecode is not writes
    del sys.modules["helper_of_kernels"]
