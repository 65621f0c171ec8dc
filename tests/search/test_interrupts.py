"""Ctrl-C is heard when TVM is done."""

from __future__ import annotations

import signal
import threading

import pytest

from gnnperf.search.evolution import uninterrupted


def test_an_interrupt_is_raised_at_the_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_is_told_rather_than_the_interrupt() -> None:
    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        work()


def test_other_threads_may_use_it() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]
