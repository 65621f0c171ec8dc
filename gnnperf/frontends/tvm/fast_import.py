"""Import TVM in a few seconds instead of half a minute.

Two costs are avoided. TVM's `@T.prim_func` calls `inspect.stack()` for each function that it decorates, and
`tvm.s_tir.tensor_intrin`, which MetaSchedule imports, decorates some five hundred: with many modules loaded,
reading the source of every frame takes up to 25 s. Of these frames only the innermost are looked at. And
`tvm_ffi` imports torch when it can (2.5 s), only to recognise its tensors.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import linecache
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_FRAMES_READ = 4  # TVM's is_defined_in_class looks at the source line of the third
_MODULES = ("tvm", "tvm.s_tir.tensor_intrin", "tvm.s_tir.meta_schedule")


def import_tvm(without_torch: bool = False) -> ModuleType:
    """The module `tvm`, with MetaSchedule and its tensor intrinsics loaded.

    without_torch: keep `tvm_ffi` from importing torch, for processes that only build and measure. It has an
    effect where neither was imported before; torch can still be imported afterwards.
    """
    if all(name in sys.modules for name in _MODULES):
        return sys.modules["tvm"]
    with _hidden_torch() if without_torch else contextlib.nullcontext(), _short_stack():
        for name in _MODULES:
            importlib.import_module(name)
    return sys.modules["tvm"]


@contextlib.contextmanager
def _hidden_torch() -> Iterator[None]:
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]


@contextlib.contextmanager
def _short_stack() -> Iterator[None]:
    """`inspect.stack` reads source lines for the innermost frames only."""
    original = inspect.stack
    inspect.stack = _stack
    try:
        yield
    finally:
        inspect.stack = original


def _stack(context: int = 1) -> list[inspect.FrameInfo]:
    found: list[inspect.FrameInfo] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code, lines = frame.f_code, None
        if len(found) < _FRAMES_READ and context and not code.co_filename.startswith("<"):
            line = linecache.getline(code.co_filename, frame.f_lineno)
            lines = [line] if line else None
        index = 0 if lines else None
        found.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, lines, index))
        frame = frame.f_back
    return found
