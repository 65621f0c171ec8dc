"""The corpus list is well formed."""

from __future__ import annotations

import importlib.util
import inspect
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import dace
import numpy as np
import pytest
import yaml

REPO = Path(__file__).parents[3]
CORPUS = REPO / "configs" / "corpus"
MAX_BYTES = 210e6  # what the largest sizes may take

Arrays: TypeAlias = dict[str, tuple[tuple[int, ...], "np.dtype[Any]"]]
"""Argument name -> shape and type."""


@cache
def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kernels_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resolve(reference: str) -> Any:
    path, name = reference.split(":")
    return getattr(load(CORPUS / path), name)


ENTRIES = yaml.safe_load((CORPUS / "first.yaml").read_text())["entries"]


def label(entry: dict[str, Any]) -> str:
    return f"{entry['kernel'].split(':')[1]}-{'-'.join(map(str, entry['symbols'].values()))}"


def arguments(program: Any) -> dict[str, Any]:
    """Argument name -> data descriptor or scalar type, from the annotations."""
    return {k: p.annotation for k, p in inspect.signature(program.f).parameters.items()}


def shape(array: dace.data.Array, symbols: dict[str, int]) -> tuple[int, ...]:
    return tuple(int(dace.symbolic.evaluate(extent, symbols)) for extent in array.shape)


def arrays(program: Any, symbols: dict[str, int]) -> Arrays:
    found = {k: a for k, a in arguments(program).items() if isinstance(a, dace.data.Array)}
    return {k: (shape(a, symbols), np.dtype(a.dtype.as_numpy_dtype())) for k, a in found.items()}


def small(symbols: dict[str, int]) -> dict[str, int]:
    """Distinct small sizes, so that exchanged axes do not go unnoticed."""
    special = {"NNZ": 30, "TSTEPS": 3, "STEPS": 3}
    return {name: special.get(name, 8 + 2 * i) for i, name in enumerate(symbols)}


def check_inputs(data: dict[str, Any], expected: Arrays) -> None:
    """What is given fits; what is left out is generated."""
    assert {k: (v.shape, v.dtype) for k, v in data.items()} == {k: expected[k] for k in data}


def test_corpus_is_broad() -> None:
    families = {entry["family"] for entry in ENTRIES}
    assert len(ENTRIES) >= 130
    assert len(families) >= 16
    assert len({label(e) + str(e.get("inputs")) for e in ENTRIES}) == len(ENTRIES), "an entry is listed twice"


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_corpus_entry(entry: dict[str, Any]) -> None:
    program = resolve(entry["kernel"])
    symbols = entry["symbols"]
    assert program.f.__doc__, "every kernel says what it computes"
    needed = {str(s) for a in arguments(program).values() for s in getattr(a, "free_symbols", ())}
    assert needed <= set(symbols)
    assert set(symbols) - needed <= {"TSTEPS"}, "a size that nothing uses"
    assert sum(int(np.prod(s)) * t.itemsize for s, t in arrays(program, symbols).values()) < MAX_BYTES
    if "inputs" in entry:
        check_inputs(resolve(entry["inputs"])(**small(symbols)), arrays(program, small(symbols)))
    else:
        assert all(t.kind == "f" for _, t in arrays(program, symbols).values()), "integers need real inputs"
