"""An empty store, and other processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gnnperf.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store in `tmp_path/"store"`."""
    return Store.open(tmp_path / "store", create=True)


@pytest.fixture
def start_child() -> Iterator[Callable[[str, Path], subprocess.Popen[str]]]:
    """`start_child(code, path)`: run `code`, with `store.samples` and `path`, in another process."""
    children: list[subprocess.Popen[str]] = []
    tests = str(Path(__file__).parents[1])
    preamble = (
        f"import sys\nsys.path.insert(0, {tests!r})\n"
        "from pathlib import Path\nfrom store.samples import *\n"
        "path = Path(sys.argv[1])\n"
    )

    def start(code: str, path: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", preamble + code, str(path)]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        with child:  # closes the pipes and waits
            pass
