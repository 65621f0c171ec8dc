"""Tests that need MKL."""

from __future__ import annotations

import pytest

from gnnperf.errors import InputError
from gnnperf.evaluation.spmm import find_mkl


def installed() -> bool:
    try:
        find_mkl()
    except InputError:
        return False
    return True


needs_mkl = pytest.mark.skipif(not installed(), reason="the mkl extra is not installed")
