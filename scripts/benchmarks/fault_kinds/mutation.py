"""Damaging bytes and documents by chance."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = (
    "", " ", "loop", "global", "float64", "none", "ok", "../../etc/passwd", "a\nb", "a\0b", "\ud800", "ÿ",
    "<script>",
    "x" * 10_000, "{{7*7}}", "${HOME}", "'; DROP TABLE x; --", "NaN", "1e999", "0x10", "2026-01-01",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2**31, 2**63, 2**64, 10**300, 10**5000, 0.5, -1e308, 1e-320, 7)
"""10**5000: more digits than Python reads."""


def value(chance: random.Random, code: str = "") -> Any:
    """Anything that JSON can hold, hostile words among it. code: that must not be run."""
    return chance.choice(
        (
            None, True, False, float("nan"), float("inf"), [], {}, [[]], {"a": 1}, {"value": {}},
            chance.choice(NUMBERS), chance.choice(NUMBERS), chance.choice(WORDS), chance.choice(WORDS),
            code, f"{code} if 1 else 0", {"__reduce__": code}, {"!!python/object/apply:os.system": [code]},
            nested(chance.choice((20, 40, 100)), chance.choice(([], {}))),
        )
    )  # fmt: skip


def nested(depth: int, inner: Any) -> Any:
    """A list of a list of a list."""
    for _ in range(depth):
        inner = [inner] if isinstance(inner, list) else {"a": inner}
    return inner


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in a document but itself."""
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def damaged(chance: random.Random, document: Any, code: str = "") -> Any:
    """A copy with one to three values replaced, removed, doubled, or put elsewhere."""
    found = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        known = [*places(found)]
        if not known:
            return value(chance, code)
        *way, last = chance.choice(known)
        at = found
        for key in way:
            at = at[key]
        match chance.randrange(6):
            case 0:
                del at[last]
            case 1 if isinstance(at, list):
                at.insert(last, copy.deepcopy(at[last]))
            case 1:
                at[chance.choice((f"{last}x", "surprise"))] = at.pop(last)
            case 2:
                at[last] = copy.deepcopy(_at(found, chance.choice(known)))
            case _:
                at[last] = value(chance, code)
    return found


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    try:
        for key in path:
            document = document[key]
        return document
    except (KeyError, IndexError, TypeError):
        return None


def text_of(document: Any) -> str:
    """JSON, however deep."""
    try:
        return json.dumps(document)
    except (RecursionError, ValueError):
        return "[" * 100_000


def damaged_bytes(chance: random.Random, data: bytes) -> bytes:
    """Cut short, with bits or bytes changed, a piece of zeros in it, or a piece twice; never as it was."""
    found = bytearray(data)
    while bytes(found) == data:
        at = chance.randrange(len(data))
        length = min(len(data) - at, chance.choice((1, 4, 64, 4096)))
        match chance.randrange(6):
            case 0:
                del found[at:]
            case 1:
                found[at : at + length] = bytes(length)
            case 2:
                found[at:at] = found[at : at + length]
            case 3:
                for _ in range(chance.randint(1, 8)):
                    found[chance.randrange(len(found))] = chance.randrange(256)
            case _:
                found[at] ^= 1 << chance.randrange(8)
        if not data:
            return b"\0"
    return bytes(found)


def damage(chance: random.Random, folder: Path) -> Path:
    """Damage one file of a folder, or remove it; which one."""
    path = chance.choice(sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size))
    if chance.random() < 0.05:
        path.unlink()
    else:
        path.write_bytes(damaged_bytes(chance, path.read_bytes()))
    return path
