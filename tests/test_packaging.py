"""What gnnperf imports is what it declares, and nothing is declared that nothing needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import gnnperf

ROOT = Path(gnnperf.__file__).parent
PROJECT = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED_BY_LIGHTNING = {"jsonargparse", "wandb"}
"""Extras of Lightning that `gnnperf train` uses through it: LightningCLI and WandbLogger."""


def normalised(distribution: str) -> str:
    """Project name of a requirement or distribution, as the packaging standards compare them."""
    name = re.split(r"[\[<>=~! ]", distribution, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def third_party_imports() -> set[str]:
    """Top-level modules imported anywhere in the package that are neither ours nor Python's."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - {"gnnperf"} - sys.stdlib_module_names


def test_dependencies_are_what_the_package_imports() -> None:
    provided_by = packages_distributions()
    imported = {normalised(provided_by[module][0]) for module in third_party_imports()}
    declared = {normalised(requirement) for requirement in PROJECT["dependencies"]}
    assert declared == imported | NEEDED_BY_LIGHTNING
