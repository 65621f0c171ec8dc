"""The program's own Python function, run by Python beside everything else: is it what was translated?"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.frontends.nest_program import TunableProgram
from gnnperf.measure import relative_tolerance
from gnnperf.measure.arrays import as_arrays
from gnnperf.measure.isolation import isolate
from gnnperf.measure.supervisor import Child, Report
from gnnperf.measure.verification import AGREES, root_mean_square

LARGEST_BYTES = 64 << 20
"""Of all arguments. Python takes too long for more, and keeps two copies of them."""
APART, MANY = 0.01, 0.01
"""An element is clearly another where it differs by that share of the array's root mean square, and an array
where that share of its elements does: rounding moves a few elements that decisions depend on."""
CHAOTIC = 1 << 60
"""Length of a sum that has the widest tolerance; as wide, where rounding moves the results that much."""


class PythonRun:
    """A run in a fork of this process, at the lowest priority, that is ended with `found` or `close`. inputs:
    a value of every argument."""

    def __init__(self, program: TunableProgram, inputs: Mapping[str, Any]) -> None:
        data = as_arrays(inputs)
        self._child: Child | None = None
        run = program.in_python
        if run is None or sum(array.nbytes for array in data.values()) > LARGEST_BYTES:
            return
        outputs = {name: data[name] for name in program.whole.outputs}
        self._places: dict[str, NDArray[Any]] = {
            name: np.ndarray(array.shape, array.dtype, mmap.mmap(-1, max(1, array.nbytes)))
            for name, array in outputs.items()
        }
        self._child = Child.forked(lambda report: _work(run, inputs, self._places, report))

    def found(self, patience_s: float = 0.0) -> Mapping[str, NDArray[Any]] | None:
        """What Python computed; None where it did not in time, or at all."""
        if self._child is None:
            return None
        messages = self._child.listen(patience_s)
        self.close()
        return self._places if messages else None

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


def _work(
    run: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    inputs: Mapping[str, Any],
    places: Mapping[str, NDArray[Any]],
    report: Report,
) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    isolate()  # what the function writes or sends, it does when the user calls it
    with np.errstate(all="ignore"):
        for name, value in run(inputs).items():
            places[name][...] = value
    report(done=True)


def difference(
    reference: Mapping[str, NDArray[Any]], found: Mapping[str, NDArray[Any]], reduction_length: int
) -> str:
    """`AGREES`, or in a line which output of Python's is clearly another than the reference; empty where
    rounding alone could make it so."""
    for name, expected in reference.items():
        got = found[name].reshape(expected.shape)
        if expected.dtype.kind in "fc":
            tolerance, widest = (relative_tolerance(expected.dtype, n) for n in (reduction_length, CHAOTIC))
            if tolerance >= widest:
                return ""
            size = root_mean_square(np.abs(expected))
            with np.errstate(all="ignore"):
                apart = (got != expected) & ~(np.abs(got - expected) <= APART * size)
            apart &= ~(np.isnan(got) & np.isnan(expected))
        else:
            apart = got != expected
        if apart.sum() > MANY * expected.size:
            where = tuple(int(i) for i in np.argwhere(apart)[0])
            no_number = expected.dtype.kind in "fc" and np.isnan(got[where])
            hint = "; of these inputs there may be no result: give others with --inputs" if no_number else ""
            return (
                f"{name}: {int(apart.sum())} of {expected.size} elements differ; "
                f"at {list(where)} Python computes {got[where]:.6g}, DaCe {expected[where]:.6g}{hint}"
            )
    return AGREES
