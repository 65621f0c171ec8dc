"""What else one would have called: a kernel's own Python function by NumPy, Numba or PyTorch, or the user's.

They take part as wholes, in turn with what is kept, on as many threads, and are verified like a schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gnnperf.backends.cpp.cases import WholeKernel
from gnnperf.errors import InputError
from gnnperf.frontends.nest_program import TunableProgram
from gnnperf.frontends.user_files import split_spec
from gnnperf.measure import Library, Measurement, Runner
from gnnperf.measure.competitors import Effort, PythonFunction, measure_side_by_side

KEPT = "what is kept"
OWN = {"numpy": ("numpy", ""), "numba": ("numba", "numba"), "torch": ("torch", ""),
       "torch-compile": ("torch", "torch")}  # fmt: skip
"""Competitor -> package that runs the kernel's own function, and what compiles it before."""
_IMPORTS_NUMBA = re.compile(r"^\s*(?:import|from)\s+numba\b", re.MULTILINE)
EFFORT = Effort(processes=1, budget_s=2.0)


def competitors_of(program: TunableProgram, names: Sequence[str]) -> dict[str, PythonFunction]:
    """The competitors that a user named: some of `OWN`, or functions as `file.py:function`, which take arrays
    and scalars by the names of the kernel's arguments. Raises InputError."""
    found = {}
    for name in names:
        if name in OWN:
            package, compiled = OWN[name]
            if program.function is None:
                raise InputError(
                    f"--beside {name}: expected a @dace.program in a file, whose function Python can run; "
                    "give one that does the same: --beside file.py:function"
                )
            path, function = program.function
        elif ":" in name:
            (path, function), compiled = split_spec(name, "--beside"), ""
            if not path.is_file():
                raise InputError(f"--beside: there is no file {str(path)!r}")
            package = (
                "numba"
                if _IMPORTS_NUMBA.search(path.read_text(encoding="utf-8", errors="replace"))
                else "numpy"
            )
        else:
            raise InputError(f"--beside: expected {', '.join(OWN)} or file.py:function, got {name!r}")
        found[name] = PythonFunction(
            path.resolve(), function, package, dict(program.sizes), compiled, dict(program.same)
        )
    return found


def beside(
    whole: WholeKernel, kept: Library, competitors: Mapping[str, PythonFunction], runner: Runner
) -> dict[str, Measurement]:
    """Measurements of the competitors, each with what is kept as its baseline. Never raises for what one of
    them does."""
    found = measure_side_by_side({KEPT: kept, **competitors}, whole.built.problem, EFFORT, runner.threads)
    ours = found.pop(KEPT)
    return {name: theirs.over(ours) if ours.status == "ok" else theirs for name, theirs in found.items()}
