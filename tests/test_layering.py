"""Which packages of gnnperf each package may import, and that no imports go round in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import gnnperf

ROOT = Path(gnnperf.__file__).parent
ALLOWED = {
    "errors": "",
    "shipped": "",
    "documents": "",
    "figures": "",
    "graph": "errors documents devices figures",
    "devices": "errors documents",
    "nests": "errors graph",
    "schedules": "errors documents devices graph nests",
    "measure": "errors documents devices schedules",
    "store": "errors documents devices graph measure schedules",
    "frontends": "errors documents devices graph nests schedules measure",
    "nn": "errors documents devices graph nests schedules frontends",
    "backends": "errors devices nests schedules measure frontends nn",
    "search": "devices nests schedules measure frontends backends",
    "corpus": "errors devices graph nests schedules measure frontends backends search",
    "training": "errors documents figures devices graph nests schedules measure frontends nn store corpus "
    "retrieval",
    "retrieval": "errors devices graph nests schedules measure frontends nn store backends search corpus "
    "shipped",
    "export": "errors documents devices graph schedules nn store",
    "evaluation": "errors documents figures devices graph schedules measure frontends nn store corpus "
    "training retrieval",
    "report": "errors devices graph schedules frontends nn store retrieval evaluation",
    "session": "errors documents shipped devices graph measure frontends backends nn store retrieval report",
    "integrations": "errors devices graph schedules measure frontends backends nn store retrieval shipped "
    "session",
    "cli": "errors documents shipped devices graph measure frontends backends nn store corpus training "
    "retrieval export evaluation report session integrations",
}
"""By package, the packages that it may import besides itself."""

FILES = sorted(ROOT.rglob("*.py"))


def package_of(module: str) -> str | None:
    """The package of a dotted module name; None outside gnnperf and for the root package itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "gnnperf" and len(parts) > 1 else None


def imported(path: Path, types: bool = True) -> Iterator[str]:
    """Dotted names a file imports, also those imported inside functions; types: those for types only, too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types and not types:
            continue
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


def test_no_imports_go_round_in_a_circle() -> None:
    """Not those of types, nor those of the root package, which offers what all others are for."""
    modules = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts): p for p in FILES}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph = nx.DiGraph()
    for module, path in modules.items():
        for name in set(imported(path, types=False)):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and module != target and "gnnperf" not in (module, target):
                graph.add_edge(module, target)
    circles = [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]
    assert not circles
