"""What the tests of the benchmarks share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the processes that replay: threads that wait for one another crawl on a busy machine."""
    with threadpool_limits(1):
        yield
