"""Tasks in processes of their own: they send, fail, are killed and interrupted one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gnnperf.measure.workers import Send, each


def square(number: int, send: Send) -> None:
    for _ in range(number):
        send((number, number**2))


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_everything_that_is_sent_arrives_before_the_end_of_its_task(processes: int) -> None:
    received: list[tuple[int, int]] = []
    for number, code in each([1, 2, 3, 0], square, received.append, processes):
        assert code == 0
        assert received.count((number, number**2)) == number
    assert sorted(received) == sorted((n, n**2) for n in (1, 2, 3) for _ in range(n))


def test_started_in_order_and_no_more_than_asked_for(tmp_path: Path) -> None:
    def mark(name: str, send: Send) -> None:
        (tmp_path / name).touch()
        send((name, len(list(tmp_path.iterdir()))))
        time.sleep(0.05)
        (tmp_path / name).unlink()

    received: list[tuple[str, int]] = []
    list(each("abcd", mark, received.append, processes=1))
    assert received == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]


def test_a_task_sees_what_is_known_when_it_starts() -> None:
    known: list[int] = []
    list(each([1, 2, 3], lambda number, send: send(len(known)), known.append, processes=1))
    assert known == [0, 1, 2]


def test_a_task_that_fails_or_dies_costs_itself() -> None:
    def fragile(number: int, send: Send) -> None:
        if number == 1:
            raise SystemExit(3)
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        send(number)

    received: list[int] = []
    ended = dict(each([0, 1, 2, 3], fragile, received.append))
    assert ended == {0: 0, 1: 3, 2: -signal.SIGKILL, 3: 0}
    assert sorted(received) == [0, 3]


def test_one_that_dies_in_the_middle_of_a_message_costs_itself() -> None:
    def cut_short(number: int, send: Send) -> None:
        if number == 1:
            writer: Connection = getattr(send, "__self__")  # noqa: B009
            os.write(writer.fileno(), struct.pack("!i", 1000) + b"not all of it")
            os.kill(os.getpid(), signal.SIGKILL)
        send(number)

    received: list[int] = []
    assert dict(each([1, 2], cut_short, received.append)) == {1: -signal.SIGKILL, 2: 0}
    assert received == [2]


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


def test_who_stops_early_stops_the_tasks_and_they_tidy_up(tmp_path: Path) -> None:
    def endless(name: str, send: Send) -> None:
        try:
            send(name)
            time.sleep(3600)
        finally:
            (tmp_path / name).touch()

    with pytest.raises(KeyboardInterrupt):
        list(each("ab", endless, interrupt))
    assert len(list(tmp_path.iterdir())) >= 1, "what had begun has tidied up"


def test_a_task_that_goes_on_when_it_is_stopped_ends_with_the_next_that_it_sends() -> None:
    def stubborn(_: str, send: Send) -> None:
        send("begun")
        with contextlib.suppress(KeyboardInterrupt):  # as what catches everything does
            time.sleep(3600)
        send("x" * (1 << 20))

    with pytest.raises(KeyboardInterrupt):
        list(each("ab", stubborn, interrupt))
