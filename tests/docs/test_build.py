"""The documentation builds without a warning and tells of everything that is public."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from docs.examples import DOCS

import gnnperf
from gnnperf.measure.measurement import STATUSES
from gnnperf.schedules.recipes import Recipe


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages. References that lead nowhere are warnings, and warnings are errors."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-qN", "-d", folder / "doctrees"]
    done = subprocess.run([*command, DOCS, folder / "html"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(built: Path) -> None:
    inventory = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    documented = set(re.findall(r"^(\S+) py:", zlib.decompress(inventory).decode(), flags=re.M))
    found = [m.name for m in pkgutil.walk_packages(gnnperf.__path__, "gnnperf.") if m.ispkg]
    packages = ["gnnperf", *(name for name in found if not name.startswith("gnnperf.cli"))]
    exports = {name: getattr(importlib.import_module(name), "__all__", ()) for name in packages}
    public = {f"{package}.{name}" for package, names in exports.items() for name in names}
    assert public
    assert not public - documented


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["retrieve", "propose", "store-merge", "eval-transfer", "devices-probe"])
def test_verbs_are_in_the_reference(built: Path, verb: str) -> None:
    page = (built / "reference" / "commands.html").read_text(encoding="utf-8")
    assert f'id="gnnperf-{verb}"' in page


@pytest.mark.slow
def test_cards_are_included(built: Path) -> None:
    cards = sorted((DOCS.parent / "checkpoints").glob("**/README.md"))
    pages = " ".join(page.read_text(encoding="utf-8") for page in (built / "checkpoints").glob("*.html"))
    sources = " ".join(page.read_text(encoding="utf-8") for page in (DOCS / "checkpoints").glob("*.md"))
    for card in cards:
        heading = card.read_text(encoding="utf-8").partition("\n## ")[2].partition("\n")[0]
        assert heading in pages, card
        assert f"{{include}} ../../{card.relative_to(DOCS.parent)}\n" in sources
    assert all((folder / "README.md") in cards for folder in (DOCS.parent / "checkpoints").glob("*-*"))


def test_environment_variables_are_named() -> None:
    sources = " ".join(
        path.read_text(encoding="utf-8") for path in Path(gnnperf.__file__).parent.rglob("*.py")
    )
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    read = set(re.findall(r"\bGNNPERF_[A-Z]+\b", sources))
    assert "GNNPERF_STORE" in read
    assert {name for name in read - {"GNNPERF_BLAS"} if f"`{name}`" not in page} == set()  # a macro


def test_words_of_closed_lists_are_explained() -> None:
    statuses = (DOCS / "reference" / "statuses.md").read_text(encoding="utf-8")
    assert {status for status in STATUSES if f"| `{status}` |" not in statuses} == set()
    recipes = (
        (DOCS / "reference" / "recipes.md").read_text(encoding="utf-8").partition("## What the fields do")[2]
    )
    assert {f.name for f in dataclasses.fields(Recipe) if f"`{f.name}`" not in recipes} == set()


def test_the_front_page_is_short() -> None:
    assert len((DOCS.parent / "README.md").read_bytes()) <= 7_000


def test_links_of_the_front_page_lead_somewhere() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(#[^)]*)?\)", text)
    assert targets
    assert [target for target, _ in targets if not (DOCS.parent / target).exists()] == []
