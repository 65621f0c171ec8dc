"""The libraries that TVM functions may call: where they are, and the small one that calls them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from gnnperf.devices import shared_library
from gnnperf.errors import GnnperfError, NotApplicable

_SOURCE = Path(__file__).with_name("operations.cpp")
_NUMBERS = 64
"""Enough for the order of any weights."""


@dataclass(frozen=True)
class VendorLibrary:
    """A library. package: that installs it, with its headers. file: of the library, as it is loaded.
    header: of the package `headers`. types:
    of arrays that it multiplies. convolutions: whether it has them."""

    name: str
    package: str
    headers: str
    file: str
    header: str
    types: tuple[str, ...]
    convolutions: bool

    @property
    def entry(self) -> str:
        """The function that TVM's code calls."""
        return f"gnnperf_{self.name}"

    @property
    def compiled(self) -> str:
        """File name of what has that function."""
        return f"libgnnperf_{self.name}.so"


ONEDNN = VendorLibrary(
    "onednn", "onednn-cpu-gomp", "onednn-devel-cpu-gomp", "libdnnl.so.3", "dnnl.hpp", ("float32",), True
)
OPENBLAS = VendorLibrary(
    "openblas",
    "scipy-openblas32",
    "scipy-openblas32",
    "libscipy_openblas.so",
    "cblas.h",
    ("float32", "float64"),
    False,
)
LIBRARIES: Mapping[str, VendorLibrary] = {library.name: library for library in (ONEDNN, OPENBLAS)}


def libraries_of(dtype: str, convolution: bool) -> Sequence[VendorLibrary]:
    """Those installed that compute with such arrays, the fastest first."""
    return [
        library
        for library in LIBRARIES.values()
        if dtype in library.types and (library.convolutions or not convolution) and _installed(library)
    ]


def _installed(library: VendorLibrary) -> bool:
    try:
        installed_file(library)
    except NotApplicable:
        return False
    return True


@cache
def installed_file(library: VendorLibrary) -> Path:
    """The library itself. Raises NotApplicable where its package is not installed."""
    return _file_of(library.package, library.file)


def _file_of(package: str, name: str) -> Path:
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        files = ()
    found = sorted((Path(file.locate()) for file in files if file.name == name), key=lambda f: len(f.parts))
    if not found:
        raise NotApplicable(f"calls of {name} need the package {package}, which is not installed")
    return found[0].resolve()


@cache
def compiled_file(library: VendorLibrary) -> Path:
    """What has `VendorLibrary.entry`, compiled once for each version in the user's cache. Raises GnnperfError
    where there is no compiler, or it fails."""
    file = installed_file(library)
    headers = _file_of(library.headers, library.header)
    options = [f"-DGNNPERF_ENTRY={library.entry}", f"-I{headers.parent}"]
    if library.convolutions:
        options.append("-DGNNPERF_ONEDNN")
    link = [str(file), f"-Wl,-rpath,$ORIGIN:{file.parent},-soname,{library.compiled}"]
    return shared_library(_SOURCE, library.compiled, options, link)


@cache
def load(library: VendorLibrary, everywhere: bool = True) -> ctypes.CDLL:
    """Load it into this process. everywhere: so that code that TVM compiles finds its functions; then
    PyTorch, which has a oneDNN of its own, must not be loaded later. Raises GnnperfError."""
    path = compiled_file(library)
    scope = os.RTLD_GLOBAL if everywhere else os.RTLD_LOCAL
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # it would start threads, and this process may fork
    try:
        return ctypes.CDLL(str(path), mode=scope | os.RTLD_NOW)
    except OSError as error:
        raise GnnperfError(f"{path.name} cannot be loaded: {error}") from None
    finally:
        if before is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        else:
            os.environ["OPENBLAS_NUM_THREADS"] = before


def linking(libraries: Iterable[VendorLibrary]) -> list[str]:
    """Options of the linker for code that calls them and lies beside them."""
    files = [str(compiled_file(library)) for library in libraries]
    return ["-Wl,--no-as-needed,-rpath,$ORIGIN", *files] if files else []


@dataclass(frozen=True)
class WeightsOrder:
    """How a library wants weights: sizes with padding and steps of their dimensions, which are those of whole
    blocks; blocks: (dimension, size) of each, outermost first."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...]


def weights_order(text: str, parts: int) -> WeightsOrder:
    """Of a convolution that oneDNN computes in so many parts. Raises NotApplicable where it has none."""
    found = (ctypes.c_int64 * _NUMBERS)()
    function = load(ONEDNN, everywhere=False).gnnperf_onednn_weights
    count = function(text.encode(), ctypes.c_int64(parts), found)
    if not count:
        raise NotApplicable("oneDNN has no such convolution")
    rank, *numbers = found[:count]
    sizes, steps, (blocks, *inner) = numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :]
    return WeightsOrder(tuple(sizes), tuple(steps), tuple(zip(inner[blocks:], inner[:blocks], strict=True)))
