"""TorchScript artefacts: one file that any program with libtorch loads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.jit._trace import TracerWarning  # torch.jit has it, but not for type checkers

from gnnperf.errors import InputError, first_line
from gnnperf.export.functions import Call, Function
from gnnperf.export.writing import check_archive, write_whole

METADATA = "gnnperf.json"
"""Name of the metadata inside the artefact."""


class _Functions(nn.Module):
    """The functions as submodules, each called by its name."""

    def __init__(self, functions: Sequence[tuple[str, nn.Module]]) -> None:
        super().__init__()
        for name, module in functions:
            self.add_module(name, module)


def save_torchscript(path: Path, functions: Sequence[Function], metadata: str) -> None:
    """Script every function and write them, with their metadata, to one file. InputError: cannot write it."""
    with _torchscript_is_deprecated(), torch.no_grad():
        scripted = torch.jit.script(_Functions([(f.name, _scripted(f)) for f in functions]).eval())
        buffer = scripted.save_to_buffer(_extra_files={METADATA: metadata})  # type: ignore[no-untyped-call]
    write_whole(path, [buffer])


def _scripted(function: Function) -> nn.Module:
    module = function.module.eval()
    if function.traced:
        return torch.jit.trace(module, function.example, check_trace=False)  # type: ignore[no-untyped-call]
    return torch.jit.script(module)


def load_torchscript(path: Path) -> tuple[Call, str]:
    """What calls the functions, and the text of their metadata. Raises InputError for another file."""
    extra = {METADATA: ""}
    check_archive(path)
    try:
        with _torchscript_is_deprecated():
            module = torch.jit.load(str(path), map_location="cpu", _extra_files=extra)  # type: ignore[no-untyped-call]
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"cannot read {path}: {first_line(error)}; write it again with `gnnperf export`"
        ) from error
    text = extra[METADATA]

    def call(name: str, inputs: Sequence[Tensor]) -> Tensor | Sequence[Tensor]:
        found: Tensor | Sequence[Tensor] = getattr(module, name)(*inputs)
        return found

    return call, text.decode() if isinstance(text, bytes) else text


@contextmanager
def _torchscript_is_deprecated() -> Iterator[None]:
    """torch 2.13 says so of every call; C++ programs without Python have nothing else that is as small."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated", DeprecationWarning)
        # Constants of formulas (tile sizes, widths of intervals) are meant to be constants of the trace.
        warnings.filterwarnings("ignore", "torch.tensor results are registered", TracerWarning)
        yield
