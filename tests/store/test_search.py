"""Exact search finds what sorting everything finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnperf.store.searchable import largest


@given(st.integers(1, 5000), st.integers(1, 30), st.integers(0, 2**32))
def test_the_largest_values(count: int, k: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    k = min(k, count)
    np.testing.assert_array_equal(np.sort(values[largest(values, k)]), np.sort(values)[-k:])


@pytest.mark.parametrize("usable", [3, 700])
def test_values_that_are_left_out_are_not_found(usable: int) -> None:
    values = np.full(10_000, -np.inf, dtype=np.float32)
    chosen = np.random.default_rng(0).choice(10_000, usable, replace=False)
    values[chosen] = np.arange(usable)
    assert set(largest(values, 3)) == set(chosen[-3:])
