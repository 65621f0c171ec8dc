"""DaCe's own optimisation of a program: what a user gets who asks for it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import dace

from gnnperf.errors import BuildError, first_line
from gnnperf.frontends.dace.quiet import quiet_dace

BASELINES: Mapping[str, str] = {"auto": "dace-auto", "simplify": "dace-simplify"}
"""What a user may ask to beat, and how reports call it: DaCe's own optimisation, or the plain program."""


def auto_optimised(sdfg: Any) -> Any:
    """A copy after DaCe's `auto_optimize`. Raises BuildError where that fails.

    Library nodes stay portable loops: DaCe would link whatever BLAS it believes to find.
    """
    from dace.transformation.auto.auto_optimize import auto_optimize

    program = copy.deepcopy(sdfg)
    with quiet_dace():
        try:
            auto_optimize(program, dace.DeviceType.CPU, validate=False)
        except Exception as error:  # DaCe's transformations raise anything
            raise BuildError(f"auto_optimize failed: {first_line(error)}") from error
    return program
