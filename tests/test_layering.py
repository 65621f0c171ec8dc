"""Which packages of gnnperf each package may import, and that no imports go round in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gnnperf

ROOT = Path(gnnperf.__file__).parent
ALLOWED = {
    "errors": "",
    "shipped": "",
    "graph": "errors",
    "devices": "errors",
    "nests": "errors graph",
    "schedules": "errors graph nests",
    "measure": "errors devices schedules",
    "frontends": "errors devices graph nests schedules measure",
    "nn": "errors devices graph schedules frontends",
    "store": "errors devices measure",
    "backends": "errors devices graph nests schedules measure frontends",
    "search": "errors nests schedules measure frontends backends",
    "corpus": "errors devices graph schedules measure frontends backends search",
    "training": "errors graph schedules measure frontends nn corpus",
    "retrieval": "errors devices graph schedules measure frontends backends nn store search corpus",
    "export": "errors devices graph nn store retrieval",
    "evaluation": "errors devices graph schedules measure frontends nn store corpus training retrieval",
    "report": "errors devices graph schedules frontends nn store retrieval evaluation",
    "integrations": "errors devices graph schedules measure frontends backends nn store retrieval shipped",
    "cli": "errors devices graph measure frontends backends nn store corpus training retrieval evaluation "
    "export report integrations shipped",
}
"""By package, the packages that it may import besides itself."""

FILES = sorted(ROOT.rglob("*.py"))


def package_of(module: str) -> str | None:
    """The package of a dotted module name; None outside gnnperf and for the root package itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "gnnperf" and len(parts) > 1 else None


def imported(path: Path) -> Iterator[str]:
    """Dotted names a file imports, also those imported inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import; write the full name"
            assert node.module is not None
            # `from gnnperf import graph` names a package as much as `from gnnperf.graph import x` does.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_package_is_listed() -> None:
    found = {p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert found - {"__init__", "__main__", "__pycache__", "py"} <= set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_are_allowed(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return  # the root package offers what all others are for
    allowed = {own, *ALLOWED[own].split()}
    for name in imported(path):
        assert not name.startswith("benchmarks"), f"{own} imports {name}, which no wheel has"
        other = package_of(name)
        if other is not None and other in ALLOWED:
            assert other in allowed, f"{own} imports {name}"
