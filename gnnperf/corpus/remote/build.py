"""Building functions into libraries that run elsewhere: host code for any x86-64, machine code for a GPU."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnnperf.backends.tvm.batch import cause, last_line
from gnnperf.errors import BuildError
from gnnperf.measure.confine import die_with_parent
from gnnperf.measure.remote.runtime import CUBINS, compile_cubin

HOST = {"kind": "llvm", "mcpu": "x86-64-v3"}
BUILD_S = 120.0
"""For one library, without the CUDA compiler."""

_APART = {"tirx.disable_storage_rewrite": True}
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
        _apart(lambda: _build(functions, target, pack, partial, _APART if tensor_cores else {}), BUILD_S)
        partial.rename(pack / name)
    finally:
        partial.unlink(missing_ok=True)


def has_nvcc() -> bool:
    """Whether machine code for GPUs can be made here."""
    return shutil.which("nvcc") is not None


def _build(
    functions: Mapping[str, Any], target: Any, pack: Path, path: Path, config: Mapping[str, Any]
) -> None:
    import tvm

    module = tvm.IRModule({key: f.with_attr("global_symbol", key) for key, f in functions.items()})
    with tvm.transform.PassContext(config=dict(config)):
        built = tvm.tirx.build(module, target)
    library = getattr(built, "mod", built)
    path.parent.mkdir(parents=True, exist_ok=True)
    library.export_library(str(path))
    signal.alarm(0)  # nvcc has a limit of its own
    for imported in library.imports:
        if imported.kind == "cuda" and has_nvcc():
            compile_cubin(imported.inspect_source(), str(target.attrs["arch"]), pack / CUBINS)


def _apart(work: Callable[[], None], limit_s: float) -> None:
    """Do the work in a fork, for so long at most. Raises BuildError with what the fork said last."""
    reader, writer = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            die_with_parent(parent)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, limit_s)
            work()
            os._exit(0)
        except BaseException as error:
            os.write(writer, last_line(error).encode())
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        message = said.read().decode(errors="replace")
    _, ended = os.waitpid(pid, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # a compiler that it started
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGALRM:
        raise BuildError(f"took longer than {limit_s:g} s")
    if ended:
        raise BuildError(message or cause(ended))
