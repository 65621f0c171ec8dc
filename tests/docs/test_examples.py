"""The examples of the documentation do what it says."""

from __future__ import annotations

import doctest
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from docs.examples import DOCS, PAGES, Command, File, Session, agrees, examples, numbers_in
from helpers.nests import small_nest
from helpers.synthetic import held_nest, measurement, write_corpus

import gnnperf
from gnnperf.cli.main import run
from gnnperf.corpus.config import NestConfig, load_config

CHECKOUT = DOCS.parent


def small_corpus(folder: Path) -> None:
    """What the command would have measured that the page on training shows only."""
    settings = load_config(folder / "corpus.yaml")
    assert isinstance(settings, NestConfig)
    nests = [held_nest(small_nest(8 << i, 64), entry.family) for i, entry in enumerate(settings.entries)]
    runtimes = {"tile": 0.25, "stream": 0.9}
    measured = [measurement(n["task"], *pair) for n in nests for pair in runtimes.items()]
    write_corpus(folder / "corpus", nests, measured)


PREPARED: dict[str, Callable[[Path], None]] = {"corpus.yaml": small_corpus}
"""What is done when a page has written a file."""

SLOW = ("tutorial/tensor-programs.md", "tutorial/compiler.md", "tutorial/python.md")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, also the user's home but for the cache, beside what a checkout has."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    for name in ("configs", "scripts", "checkpoints"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gnnperf"])
    monkeypatch.setattr(gnnperf, "_DEFAULT", [])  # a session knows the store of the home where it began
    for name in ("GNNPERF_STORE", "GNNPERF_DATA", "XDG_DATA_HOME", "WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "HOME": str(tmp_path), "XDG_CACHE_HOME": cache, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "120",
        "WANDB_BASE_URL": "http://127.0.0.1:9",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return tmp_path


def output(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command prints on standard output. gnnperf runs in this process, which has its imports."""
    capfd.readouterr()
    program, *arguments = shlex.split(command)
    if program == "gnnperf":
        assert run(arguments) == 0, capfd.readouterr().err
        return capfd.readouterr().out
    assert program == "python"
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mistakes(text: str, names: dict[str, object]) -> str:
    """Where Python answers something else than a session says; `names` are those of the page's sessions."""
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, names, "session", None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test, out=told.append, clear_globs=False).attempted
    names.update(test.globs)
    return "".join(told)


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        (" GPU  runtime\n l4  7.32 ms\n", " GPU   runtime \n l4   809 µs\n", True),
        ("speedup 1.5x\n...\nend", "speedup 20.1x\nmore\nend\n", True),
        ("close: True", "close: False", False),
        ("speedup 1.5x\n...\nend", "speedup 1.5x\nmore\n", False),
        ("added 1 nests", "added 1 nests and 2 records", False),
    ],
)
def test_words_are_compared_and_numbers_are_not(expected: str, got: str, same: bool) -> None:
    assert agrees(expected, got) is same


def test_sessions_are_checked() -> None:
    names: dict[str, object] = {}
    assert not mistakes(">>> a = 2\n>>> f'{a} of many'\n'... many'\n", names)
    assert "Expected:\n    3" in mistakes(">>> a\n3\n", names)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page for page in PAGES]
)
def test_examples(page: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for example in examples(page):
        match example:
            case File(name, text):
                (folder / name).write_text(text, encoding="utf-8")
                PREPARED.get(name, lambda _: None)(folder)
            case Command(line, expected):
                printed = output(line, capfd)
                assert not expected or agrees(expected, printed), f"$ {line}\n{printed}"
                if line.startswith("gnnperf predict") and expected and "..." not in expected:
                    assert numbers_in(printed) == pytest.approx(numbers_in(expected), rel=0.02), printed
            case Session(text):
                assert not mistakes(text, names)
