"""Building functions into libraries that run elsewhere: host code for any x86-64, machine code for a GPU."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnnperf.errors import BuildError
from gnnperf.measure.remote.runtime import CUBINS, compile_cubin
from gnnperf.measure.supervisor import Failed, Report, result_of

HOST = {"kind": "llvm", "mcpu": "x86-64-v3"}
BUILD_S = 120.0
"""For one library, without the CUDA compiler."""

_OWN_MEMORY = {"tirx.disable_storage_rewrite": True}
"""Every array has memory of its own: TVM's storage rewriting gives arrays of different types the same memory,
and then fails at the pointers to it that tensor cores take."""


def build_library(
    functions: Mapping[str, Any], target: Any, pack: Path, name: str, tensor_cores: bool = False
) -> None:
    """Build functions (by the name that each gets) into the library `name` of a pack.

    tensor_cores: the functions use them. For a GPU, the machine code goes into the pack's `cubins` where nvcc
    is installed. In a process of its own: raises BuildError where TVM or nvcc fails, crashes, or takes too
    long.
    """
    partial = (pack / name).with_suffix(".partial.so")
    try:
        config = _OWN_MEMORY if tensor_cores else {}
        result_of(lambda report: _build(functions, target, pack, partial, config, report), BUILD_S)
        partial.rename(pack / name)
    except Failed as failure:
        raise BuildError(failure.detail) from None
    finally:
        partial.unlink(missing_ok=True)


def has_nvcc() -> bool:
    """Whether machine code for GPUs can be made here."""
    return shutil.which("nvcc") is not None


def _build(
    functions: Mapping[str, Any],
    target: Any,
    pack: Path,
    path: Path,
    config: Mapping[str, Any],
    report: Report,
) -> None:
    import tvm

    module = tvm.IRModule({key: f.with_attr("global_symbol", key) for key, f in functions.items()})
    with tvm.transform.PassContext(config=dict(config)):
        built = tvm.tirx.build(module, target)
    library = getattr(built, "mod", built)
    path.parent.mkdir(parents=True, exist_ok=True)
    library.export_library(str(path))
    report(stage="machine code", limit_s=None)  # nvcc has a limit of its own
    for imported in library.imports:
        if imported.kind == "cuda" and has_nvcc():
            compile_cubin(imported.inspect_source(), str(target.attrs["arch"]), pack / CUBINS)
