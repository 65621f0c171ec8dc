"""AOTInductor artefacts: functions compiled ahead of time for one kind of machine and release of torch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnperf.errors import BuildError, InputError, first_line
from gnnperf.export.functions import Function
from gnnperf.export.torchscript import METADATA
from gnnperf.export.writing import check_archive, write_whole


def save_aoti(path: Path, functions: Sequence[Function], metadata: str) -> None:
    """Compile every function and write them, with their metadata, to one file.

    Raises InputError: cannot write it. Raises BuildError: torch or its C++ compiler failed.
    """
    from torch.export.pt2_archive._package import package_pt2

    buffer = io.BytesIO()
    try:
        with _known_warnings(), torch.no_grad():
            files = {function.name: _compiled(function) for function in functions}
            package_pt2(buffer, aoti_files=files, extra_files={METADATA: metadata})
    except Exception as error:  # torch raises what it likes, down to the compiler's own errors
        raise BuildError(f"AOTInductor cannot compile the model: {first_line(error)}") from error
    write_whole(path, [buffer.getvalue()])


def _compiled(function: Function) -> list[Any]:
    module = function.module.eval()
    dims: dict[str, Any] = {}
    shapes = tuple(
        {i: _dim(size, dims) for i, size in enumerate(spec.shape) if isinstance(size, str)}
        for spec in function.inputs
    )
    # Code is compiled for rows that lie as the example's do, and is called with rows one after the other.
    example = tuple(tensor.contiguous() for tensor in function.example)
    exported = torch.export.export(module, example, dynamic_shapes=(*shapes,))
    # Scalar constants that are kept as tensors: inductor cannot stack those that it inlines.
    options: dict[str, Any] = {"aot_inductor.package": True, "always_keep_tensor_constants": True}
    return torch._inductor.aot_compile(exported.module(), example, options=options)  # type: ignore


def _dim(size: str, dims: dict[str, Any]) -> Any:
    """The symbolic size of a name, or of a name plus a number."""
    name, _, more = size.partition("+")
    dim = dims.setdefault(name, torch.export.Dim(name))
    return dim + int(more) if more else dim


def compiled_for() -> dict[str, str]:
    """What decides whether this machine can run what was compiled here."""
    from torch._inductor.codecache import get_device_information

    return {key: str(value) for key, value in get_device_information("cpu").items()}


class AotiFunctions:
    """The functions of a loaded artefact; each is unpacked when it is called first."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._loaded: dict[str, Any] = {}

    def __call__(self, name: str, inputs: Sequence[Tensor]) -> Tensor | Sequence[Tensor]:
        """Call one function."""
        if name not in self._loaded:
            from torch._inductor.package.package import load_package

            with _known_warnings():
                self._loaded[name] = load_package(self._path, name, run_single_threaded=True)
        found: Tensor | Sequence[Tensor] = self._loaded[name](*inputs)
        return found


def load_aoti(path: Path) -> tuple[AotiFunctions, str]:
    """The functions and the text of their metadata. Raises InputError for a file that is none of this."""
    from torch.export.pt2_archive._package import PT2ArchiveReader

    check_archive(path)
    try:
        with PT2ArchiveReader(str(path)) as archive:
            text = archive.read_string(f"extra/{METADATA}")
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"cannot read {path}: {first_line(error)}; write it again with `gnnperf export`"
        ) from error
    return AotiFunctions(path), text


@contextmanager
def _known_warnings() -> Iterator[None]:
    """torch 2.13 warns of how its own parts use others that it would like to be rid of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.script_method` is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
        yield
