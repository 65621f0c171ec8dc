"""What is begun ahead, in a fork, while models are loaded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from gnnperf.backends.cpp.executor import CppExecutor
from gnnperf.errors import BuildError
from gnnperf.frontends.dace import DaceKernel, load_kernel

KERNEL = f"{Path(__file__).parents[2] / 'frontends' / 'kernels.py'}:gemm"


@pytest.fixture(scope="module")
def kernel() -> DaceKernel:
    return load_kernel(KERNEL, dict(N=20, M=21, K=22, alpha=1.5, beta=0.5))


def test_its_baseline_is_the_one_that_is_found_without(
    kernel: DaceKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(CppExecutor(kernel)) as executor:
        executor.prepare(True)
        executor.whole()
        name = executor.baseline_name
    with closing(CppExecutor(kernel, ahead=True)) as executor:
        refuse(kernel, monkeypatch)  # here, not in the fork
        executor.prepare(True)
        executor.whole()
        assert executor.baseline_name == name


def test_what_fails_ahead_is_told_where_it_is_needed(
    kernel: DaceKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(kernel, monkeypatch)
    with closing(CppExecutor(kernel, ahead=True)) as executor:
        executor.prepare(True)
        with pytest.raises(BuildError, match="no source today"):
            executor.whole()


def test_closed_at_once_it_leaves_no_process(kernel: DaceKernel) -> None:
    before = set(psutil.Process().children(recursive=True))
    with closing(CppExecutor(kernel, ahead=True)):
        assert set(psutil.Process().children(recursive=True)) > before
    assert set(psutil.Process().children(recursive=True)) <= before


def refuse(kernel: DaceKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, the program has no code."""

    def no_source(_: Any) -> None:
        raise BuildError("no source today")

    for name in ("plain_source", "optimised_sources"):
        monkeypatch.setattr(type(kernel), name, no_source)
