"""Both frontends make one graph of the same loops."""

from __future__ import annotations

from pathlib import Path

import pytest
from frontends.paired import SIZES

from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.tvm import load_tasks

DACE, TVM = (Path(__file__).with_name(name) for name in ("paired.py", "paired_tvm.py"))


@pytest.mark.parametrize("name", SIZES)
def test_both_forms_of_a_kernel_have_one_graph(name: str) -> None:
    (unit,) = (u for u in load_kernel(f"{DACE}:{name}", SIZES[name]).units if u.nest.has_loops)
    (task,) = load_tasks(f"{TVM}:{name}", SIZES[name])
    assert unit.graph.digest == task.graph.digest
