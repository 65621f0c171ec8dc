"""DaCe's nodes for BLAS and LAPACK, by scipy-openblas32: where it lies, and without options of the linker.

DaCe itself links what CMake finds in the system. Here generated code opens the library when it first needs
it, as emitted recipes do (`gnnperf.schedules.recipes.library_calls`). Products and systems of equations share
the threads of OpenMP, everything else runs on one: threads that OpenBLAS started itself would compete with
OpenMP's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dace
from dace.libraries.blas.environments.openblas import OpenBLAS
from dace.sdfg import nodes as dn

from gnnperf.frontends.dace.repaired import Repairs
from gnnperf.schedules.recipes.library_calls import blas_header, openblas

OPENBLAS_INSTALLED: Repairs = {(OpenBLAS, "is_installed"): lambda _: staticmethod(lambda: True)}
"""With which the optimiser of DaCe chooses OpenBLAS."""

_SHIM = Path(__file__).with_name("openblas.hpp").read_text(encoding="utf-8")
_SHARED = re.compile(r"\bcblas_([sdcz])(gemm|gemv|dot)\(")
"""Routines whose work OpenMP's threads share."""
_SYSTEMS = re.compile(r"\bLAPACKE_([sdcz])(getr[fsi])\(LAPACK_ROW_MAJOR, (?:'N', )?")
"""Those of systems of equations, as DaCe calls them; theirs, too."""
_ROUTINE = re.compile(r"\b(?:cblas|LAPACKE)_\w+(?=\()")
_CTYPES = {"s": "float", "d": "double", "c": "std::complex<float>", "z": "std::complex<double>"}


def has_products(sdfg: Any) -> bool:
    """Whether a program has nodes that BLAS may compute."""
    return any(
        isinstance(node, dn.LibraryNode) and type(node).__module__.startswith("dace.libraries.blas.")
        for node, _ in sdfg.all_nodes_recursive()
    )


def with_openblas(text: str) -> str:
    """Generated code that calls the library where it lies; other code as it is. Raises NotApplicable where
    scipy-openblas32 is not installed."""
    if not re.search(r'#include [<"]cblas\.h', text):
        return text
    include, dace_include = openblas().parents[1] / "include", Path(dace.__file__).parent / "libraries/blas"
    text = re.sub(r'#include [<"](cblas\.h|lapacke\.h)[>"]', "", text)
    text = re.sub(r'#include [<"][./]*include/dace_blas\.h[>"]', "", text)
    text = _SHARED.sub(lambda found: f"gp_cblas_{found[2]}<{_CTYPES[found[1]]}>(", text)
    text = _SYSTEMS.sub(lambda found: f"gp_lapacke_{found[2]}<{_CTYPES[found[1]]}>(", text)
    routines = sorted(set(_ROUTINE.findall(text)))
    headers = [include / "cblas.h", include / "lapacke.h", dace_include / "include/dace_blas.h"]
    calls = [f'#define {name} (*(decltype(&scipy_{name}))gp_routine("scipy_{name}"))' for name in routines]
    lines = [*(f'#include "{header}"' for header in headers), blas_header(), _SHIM, *calls]
    return "\n".join([*lines, text])
