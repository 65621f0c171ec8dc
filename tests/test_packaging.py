"""What gnnperf, its kernels and its benchmarks import is declared, and nothing is declared in vain."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import gnnperf

CHECKOUT = Path(gnnperf.__file__).parent.parent
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED_BY_LIGHTNING = {"jsonargparse"}
"""What LightningCLI needs, which Lightning itself does not ask for."""
NEEDED_BY_TVM = {"psutil"}
"""What MetaSchedule's own builder imports, which TVM does not ask for."""
CALLED_BY_COMPILED_CODE = {"scipy-openblas32", "onednn-cpu-gomp", "onednn-devel-cpu-gomp"}
"""Shared libraries and their headers: no modules."""

USED_IF_INSTALLED = ("numba", "ray")
"""Extras that the package imports from, and does without."""


def normalised(distribution: str) -> str:
    """Project name of a requirement or distribution, as the packaging standards compare them."""
    name = re.split(r"[\[<>=~! ]", distribution, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def third_party_imports() -> set[str]:
    """Top-level modules imported in these folders that are neither ours nor Python's."""
    found = set()
    folders = ("gnnperf", "configs", "scripts/benchmarks")
    for path in (path for folder in folders for path in CHECKOUT.glob(f"{folder}/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - {"gnnperf", "benchmarks"} - sys.stdlib_module_names


def test_dependencies_are_what_the_package_imports() -> None:
    provided_by = packages_distributions()
    # What is optional need not be installed here, and is called as its module.
    imported = {normalised(provided_by.get(module, [module])[0]) for module in third_party_imports()}
    extras = [PROJECT["optional-dependencies"][name] for name in USED_IF_INSTALLED]
    declared = {normalised(name) for names in (PROJECT["dependencies"], *extras) for name in names}
    assert declared == imported | NEEDED_BY_LIGHTNING | NEEDED_BY_TVM | CALLED_BY_COMPILED_CODE
