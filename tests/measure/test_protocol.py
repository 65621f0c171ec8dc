"""Messages between processes."""

from __future__ import annotations

import _thread
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

import numpy as np
import pytest

from gnnperf.measure.arrays import Bytes, as_arrays, content_id, describe
from gnnperf.measure.protocol import receive, receive_object
from gnnperf.measure.supervisor import Report, result_of


class Heard(Exception):
    pass


@pytest.fixture
def signalled() -> Iterator[None]:
    """A signal soon, of which the calls that wait know nothing: as one that came just before them. It is
    to be heard long before what they wait for comes."""

    def hear(*_: object) -> NoReturn:
        raise Heard

    before = signal.signal(signal.SIGUSR1, hear)
    soon = threading.Timer(0.2, _thread.interrupt_main, (signal.SIGUSR1,))
    late = threading.Timer(10.0, lambda: None)
    late.start()
    soon.start()
    yield
    assert late.is_alive()
    late.cancel()
    soon.join()
    signal.signal(signal.SIGUSR1, before)


def sleep_for_long(_: Report) -> None:
    time.sleep(20.0)


@pytest.mark.parametrize("wait", [receive, receive_object], ids=lambda wait: str(wait.__name__))
def test_a_signal_just_before_waiting_is_heard(
    wait: Callable[[socket.socket], object], signalled: None
) -> None:
    ours, theirs = socket.socketpair()
    given_up = threading.Timer(20.0, theirs.close)
    given_up.start()
    with ours, pytest.raises(Heard):
        wait(ours)
    given_up.cancel()
    theirs.close()


def test_a_signal_just_before_a_child_is_listened_to_is_heard(signalled: None) -> None:
    with pytest.raises(Heard):
        result_of(sleep_for_long, 60.0)


def test_what_is_sent_outlives_what_it_was_described_from() -> None:
    blobs: dict[str, Bytes] = {}
    describe(as_arrays({f"scalar{n}": float(n) for n in range(50)}), blobs)
    others = [np.full((), float(n)) for n in range(100, 200)]
    assert len(others) == 100
    assert [content_id(memory) for memory in blobs.values()] == [*blobs]
