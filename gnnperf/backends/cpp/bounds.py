"""That a nest stays within its arrays on the inputs that it has: a kernel that reads elsewhere may agree with
itself, and nothing that is measured then means anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnperf.errors import InputError
from gnnperf.frontends.nest_program import PlainNest
from gnnperf.measure import Compiler, Runner
from gnnperf.nests import LoopNest
from gnnperf.nests.bounds import OUTSIDE, changed_in, counting, data_accesses
from gnnperf.nests.text import expression_text


def require_within_bounds(
    nest: LoopNest, data: Mapping[str, Any], compiler: Compiler, runner: Runner
) -> None:
    """Where the largest and smallest subscripts leave doubts, the nest is run with checks, once.

    data: a value for every argument of the nest. Raises InputError, with the subscript; GnnperfError where
    the nest cannot be compiled or run.
    """
    accesses, changed = data_accesses(nest), changed_in(nest)
    if all(access.stays_inside(data, changed) for access in accesses):
        return
    checked = counting(nest)
    plain = PlainNest(checked, {**data, OUTSIDE: np.zeros(len(accesses), np.int64)})
    library = compiler.build(plain.plain_source())
    counts = runner.reference(library, plain.data, plain.outputs, plain.inouts)[OUTSIDE]
    for access, count in zip(accesses, counts.tolist(), strict=True):
        if count:
            size = access.size if isinstance(access.size, int) else expression_text(access.size)
            raise InputError(
                f"{nest.name}: expected {access.buffer} to be used within its bounds, got {count} accesses"
                f" where {expression_text(access.index)} is not from 0 to below {size} (dimension"
                f" {access.axis}); correct --inputs, or the kernel"
            )
