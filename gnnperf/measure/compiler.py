"""C++ text -> shared library: in parallel, with limits, several texts per library."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gnnperf.devices import find_compiler, gnnperf_cache_dir
from gnnperf.documents import replacing
from gnnperf.errors import BuildError, GnnperfError, InputError, MeasureError
from gnnperf.measure.library import Library, Protocol, Source
from gnnperf.measure.subprocesses import Tools
from gnnperf.measure.supervisor import cause_of_death

FLAGS: dict[Protocol, tuple[str, ...]] = {
    "plain": ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-std=c++17", "-fPIC", "-w"),
    "dace": ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-std=c++14", "-fPIC", "-w"),
}
"""The flags DaCe compiles with by default, so that baseline and candidate differ in code alone."""

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*$", re.MULTILINE)
_GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.MULTILINE)
_DACE_HASH = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"[./]*include/hash\.h"[^\n]*$', re.MULTILINE)
_ERROR = re.compile(r"(?:fatal |internal compiler )?error: .*|undefined reference to .*|cannot find -l.*")
# The tool's surroundings failed, not the source: not the candidate's fault.
_SURROUNDINGS = re.compile(r"No space left on device|Read-only file system|File size limit exceeded")


class Compiler:
    """Builds `Source`s with g++.

    Sources are put together, `batch` to a library, because starting the compiler costs more than
    compiling one small nest; when such a library does not build, each of
    its sources is built alone, so that a bad one costs only itself. A source that was built before
    by the same `Compiler` is not built again. `timeout_s` and `memory_bytes` bound one run of the
    compiler. Libraries live in `folder`, or in a temporary folder until `close()`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        jobs: int = 2,
        batch: int = 8,
        timeout_s: float = 60.0,
        memory_bytes: int = 8 << 30,
    ) -> None:
        self.jobs, self.batch, self.timeout_s, self.memory_bytes = jobs, batch, timeout_s, memory_bytes
        self._cxx, self.version = find_compiler()
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="gnnperf-build-")
        self.folder = Path(folder or self._temporary.name).resolve()  # type: ignore[union-attr]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MeasureError(f"cannot use the build folder {self.folder}: {error.strerror}") from None
        self._built: dict[Source, Library | BuildError] = {}
        self._names = itertools.count()
        self._unique = f"{os.getpid():x}_{id(self):x}"
        self._tools = Tools()
        self._headers: dict[Protocol, list[str]] = {}

    def build(self, source: Source) -> Library:
        """Build one source. Raises BuildError with the compiler's first error line."""
        (result,) = self.build_all([source])
        if isinstance(result, BuildError):
            raise result
        return result

    def build_all(self, sources: Iterable[Source]) -> list[Library | BuildError]:
        """Build every source; result i is its library, or why it did not compile.

        Raises MeasureError when the build folder is full or cannot be written.
        """
        wanted = list(sources)
        todo = [s for s in dict.fromkeys(wanted) if s not in self._built]
        self._tools.resume()
        for protocol in {s.protocol for s in todo} - set(self._headers):
            self._headers[protocol] = include_options(
                protocol, self._cxx, self.version, FLAGS[protocol], self._tools
            )
        pool = ThreadPoolExecutor(self.jobs)
        try:
            batches = self._batches(todo)
            for batch, results in zip(batches, pool.map(self._build_batch, batches), strict=True):
                self._built.update(zip(batch, results, strict=True))
        except BaseException:  # Ctrl-C too: do not wait for compilers that nobody waits for
            self._tools.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return [self._built[s] for s in wanted]

    def close(self) -> None:
        """Delete the temporary build folder, if it was one."""
        if self._temporary is not None:
            self._temporary.cleanup()
        self._built.clear()

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _batches(self, sources: Sequence[Source]) -> list[list[Source]]:
        """Groups that may share a library, small enough to keep every job busy."""
        groups: dict[object, list[Source]] = {}
        for i, source in enumerate(sources):
            # A macro would leak into its neighbours: a source with one of its own is built alone.
            alone = i if "#define" in _GUARD.sub("", source.text) else None
            groups.setdefault((source.protocol, source.link, alone), []).append(source)
        size = max(1, min(self.batch, -(-len(sources) // self.jobs)))
        return [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]

    def _build_batch(self, batch: list[Source]) -> list[Library | BuildError]:
        symbols = {source.symbol for source in batch}
        if len(batch) > 1 and len(symbols) == len(batch):
            text = _in_namespaces(batch) if batch[0].protocol == "dace" else "\n".join(s.text for s in batch)
        elif len(batch) == 1:
            text = _DACE_HASH.sub("", batch[0].text)
        else:
            return [r for source in batch for r in self._build_batch([source])]
        flags = (*FLAGS[batch[0].protocol], *batch[0].link)
        try:
            path = self._compile(text, batch[0].protocol, batch[0].link)
        except BuildError as error:
            if len(batch) == 1:
                return [error]
            return [r for source in batch for r in self._build_batch([source])]
        return [
            Library(path, s.symbol, s.arguments, s.protocol, s.init, self.version, " ".join(flags))
            for s in batch
        ]

    def _compile(self, text: str, protocol: Protocol, link: tuple[str, ...]) -> str:
        stem = self.folder / f"{self._unique}_{next(self._names)}"
        source, library = stem.with_suffix(".cpp"), stem.with_suffix(".so")
        options = [*FLAGS[protocol], *self._headers[protocol], "-shared"]
        command = [self._cxx, *options, str(source), "-o", str(library), *link]
        try:
            source.write_text(text)
            done = self._tools.run(command, str(self.folder), self.timeout_s, self.memory_bytes)
        except OSError as error:
            source.unlink(missing_ok=True)
            raise MeasureError(f"cannot write to the build folder {self.folder}: {error.strerror}") from None
        if done.returncode == 0:
            return str(library)
        for leftover in (source, library):
            leftover.unlink(missing_ok=True)
        if done.returncode is None:
            raise BuildError(f"compiling took longer than {self.timeout_s:g} s")
        if problem := _SURROUNDINGS.search(done.stderr):
            raise MeasureError(
                f"cannot write to the build folder {self.folder}: {problem.group().lower()}; "
                "free some space or give another folder"
            )
        first = _ERROR.search(done.stderr)
        fallback = done.stderr.strip().partition("\n")[0] or cause_of_death(done.returncode)
        raise BuildError((first.group() if first else fallback)[:500])


def _in_namespaces(batch: Sequence[Source]) -> str:
    """One text of several: includes first, then every source in a namespace of its own, since DaCe
    gives the helper functions of different programs the same names."""
    includes: dict[str, None] = {}
    parts = []
    for i, source in enumerate(batch):
        text = _DACE_HASH.sub("", source.text)
        includes.update(dict.fromkeys(line.strip() for line in _INCLUDE.findall(text)))
        parts.append(f"namespace gnnperf_{i} {{\n{_INCLUDE.sub('', text)}\n}}\n")
    return "\n".join(includes) + "\n" + "".join(parts)


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
    with replacing(folder / "gnnperf.h.gch") as unfinished:
        header = ["-x", "c++-header", str(folder / "gnnperf.h"), "-o", str(unfinished)]
        done = tools.run([*command, *header], str(folder), 300.0, 8 << 30)
        if done.returncode != 0:
            raise MeasureError(f"the headers do not compile: {done.stderr.strip()[:200]}")


def _cpu_flags() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
