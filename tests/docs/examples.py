"""The examples of the documentation as data.

In Markdown below docs/,

* a `{code-block}` with a `:caption:` is a file of that name,
* a `console` block is a session: lines that begin with `$ ` are commands (a backslash joins lines), and what
  follows is what they print: `...` stands for anything, spaces are not compared, and numbers where they are
  predicted alone,
* `pycon` blocks are a session with Python, checked by doctest: `...` stands for anything,
* `% shown only: why` on the line before a block keeps it from being run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gnnperf

DOCS = Path(gnnperf.__file__).parent.parent / "docs"
PAGES = sorted(
    p.relative_to(DOCS).as_posix()
    for p in DOCS.rglob("*.md")
    if re.search(r"^```(console|pycon)$", p.read_text(), re.M)
)

_BLOCK = re.compile(
    r"^(?:(?P<comment>% .*)\n)?(?P<fence>`{3,})(?P<info>.*)\n(?P<body>(?:.*\n)*?)(?P=fence)$", re.M
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-?\d+)?")


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    expected: str
    """What it prints; empty where the page does not say."""


@dataclass(frozen=True)
class Session:
    """Python, typed line by line, and what it answers."""

    text: str


def examples(page: str) -> Iterator[File | Command | Session]:
    """What a page has its reader do, in order."""
    for block in _BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        if (block["comment"] or "").startswith("% shown only: "):
            continue
        if block["info"].startswith("{code-block}"):
            options, _, text = block["body"].partition("\n\n")
            (name,) = re.findall(r":caption: (.*)", options)
            yield File(name, text)
        elif block["info"] == "console":
            yield from _commands(block["body"].replace("\\\n", " "))
        elif block["info"] == "pycon":
            yield Session(block["body"])


def _commands(text: str) -> Iterator[Command]:
    assert text.startswith("$ "), f"expected a command first: {text}"
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, expected = part.partition("\n")
        yield Command(line, expected)


def agrees(expected: str, got: str) -> bool:
    """Whether the words of what was printed are those that the page says."""
    wanted = [re.escape(_words(part)).replace(r"\ ", r"\s*") for part in expected.split("...")]
    return re.fullmatch(r"\s*(.|\n)*?\s*".join(wanted), _words(got)) is not None


def numbers_in(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def _words(text: str) -> str:
    return " ".join(_NUMBER.sub("#", text.replace("µs", "ms")).split())
