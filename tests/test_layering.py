"""Imports between the packages of gnnperf point one way only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gnnperf

ROOT = Path(gnnperf.__file__).parent
LAYERS = (
    "errors",
    "shipped",
    "graph",
    "devices",
    "nests",
    "schedules",
    "measure",
    "frontends",
    "store",
    "nn",
    "training",
    "tuning",
    "retrieval",
    "export",
    "integrations",
    "evaluation",
    "report",
    "cli",
)
"""Each may import itself and what stands to its left."""

FILES = sorted(ROOT.rglob("*.py"))


def layer(module: str) -> str | None:
    """The layer of a dotted module name; None outside gnnperf and for the root package itself."""
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
            # `from gnnperf import graph` names a layer as much as `from gnnperf.graph import x` does.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_package_has_a_layer() -> None:
    found = {p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert found - {"__init__", "__main__", "__pycache__"} <= set(LAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_to_the_left(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        own = LAYERS[-1]
    for name in imported(path):
        other = layer(name)
        if other is not None and other in LAYERS:
            assert LAYERS.index(other) <= LAYERS.index(own), f"{own} imports {name}"
