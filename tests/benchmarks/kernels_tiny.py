"""A suite of two small kernels.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

N, STEPS = (dace.symbol(s, dtype=dace.int64) for s in ("N", "STEPS"))

SIZES = {"axpy": {"N": 1000}, "smooth": {"N": 900, "STEPS": 3}}


@dace.program
def axpy(a: dace.float64, x: dace.float64[N], y: dace.float64[N]):
    y += a * x


@dace.program
def smooth(x: dace.float32[N]):
    for _step in range(STEPS):
        x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])


def inputs_smooth(N):
    return {"x": np.linspace(0, 1, N, dtype=np.float32) ** 2}
