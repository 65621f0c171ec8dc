"""Precompiled headers: parsing <dace/dace.h> costs 1.5 s, reading it precompiled 0.05 s."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gnnperf.devices import gnnperf_cache_dir
from gnnperf.errors import GnnperfError, InputError, MeasureError
from gnnperf.measure.library import Protocol
from gnnperf.measure.subprocesses import Tools

_STANDARD = (
    "algorithm", "cmath", "complex", "cstddef", "cstdint", "cstdlib", "cstring", "limits", "memory",
    "type_traits", "vector", "omp.h",
)  # fmt: skip
_HEADERS: dict[Protocol, str] = {
    "plain": "".join(f"#include <{name}>\n" for name in _STANDARD),
    "dace": "#include <dace/dace.h>\n#include <omp.h>\n",
}


def dace_include_folder() -> Path:
    """DaCe's runtime headers, found without importing DaCe. Raises InputError without DaCe."""
    spec = importlib.util.find_spec("dace")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("compiling DaCe code needs the dace package: pip install dace==1.0.2")
    return Path(spec.submodule_search_locations[0]) / "runtime" / "include"


def include_options(
    protocol: Protocol, cxx: str, version: str, flags: Sequence[str], tools: Tools
) -> list[str]:
    """Compiler options that include the precompiled header of a protocol, built at the first call.

    It is kept in the cache folder under a name made of all that it depends on. It only saves time:
    where it cannot be built or kept, sources are compiled without it.
    """
    include = [f"-I{dace_include_folder()}"] if protocol == "dace" else []
    # -march=native means another thing on another machine that shares the home folder.
    depends = [_HEADERS[protocol], version, *flags, *include, _cpu_flags()]
    name = hashlib.sha256("\0".join(depends).encode()).hexdigest()[:16]
    try:
        folder = gnnperf_cache_dir() / "headers" / name
        if not (folder / "gnnperf.h.gch").exists():
            _precompile(protocol, [cxx, *flags, *include], folder, tools)
    except (OSError, GnnperfError):
        return include
    return [*include, f"-I{folder}", "-include", "gnnperf.h"]


def _precompile(protocol: Protocol, command: Sequence[str], folder: Path, tools: Tools) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gnnperf.h").write_text(_HEADERS[protocol])
    # Under a temporary name first: another process may be looking for it at this moment.
    handle, unfinished = tempfile.mkstemp(suffix=".tmp", dir=folder)
    os.close(handle)
    try:
        header = ["-x", "c++-header", str(folder / "gnnperf.h"), "-o", unfinished]
        done = tools.run([*command, *header], str(folder), 300.0, 8 << 30)
        if done.returncode != 0:
            raise MeasureError(f"the headers do not compile: {done.stderr.strip()[:200]}")
        Path(unfinished).replace(folder / "gnnperf.h.gch")
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _cpu_flags() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
