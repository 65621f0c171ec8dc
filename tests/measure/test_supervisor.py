"""Children are followed, ended, and told apart by what they died of; nothing outlives who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gnnperf.errors import MeasureError
from gnnperf.measure.supervisor import (
    Child,
    Failed,
    Report,
    Service,
    cause_of_death,
    in_succession,
    result_of,
)


def test_a_result_comes_from_another_process() -> None:
    assert result_of(lambda _: {"pid": os.getpid()}, 20.0)["pid"] != os.getpid()


def kill_oneself(_: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(_: Report) -> None:
    time.sleep(3600)


def ask_for_time(report: Report) -> str:
    report(stage="slow", limit_s=None)
    time.sleep(0.5)
    return "done"


def be_loud(_: Report) -> None:
    os.write(1, b"to nobody\n")
    os.write(2, b"first\nlast words\n")
    os._exit(7)


@pytest.mark.parametrize(
    ("work", "status", "detail"),
    [
        (lambda _: 1 / 0, "run_error", "ZeroDivisionError: division by zero"),
        (kill_oneself, "run_error", "killed by SIGKILL (Killed)"),
        (lambda _: os._exit(0), "run_error", "ended early with exit code 0"),
        (be_loud, "run_error", "ended early with exit code 7: last words"),
        (hang, "timeout", "took longer than 0.2 s"),
    ],
)
def test_why_a_child_gave_no_result(work: Callable[[Report], object], status: str, detail: str) -> None:
    with pytest.raises(Failed) as failed:
        result_of(work, 0.2 if status == "timeout" else 20.0)
    assert (failed.value.status, failed.value.detail) == (status, detail)


def test_a_child_may_ask_for_more_time() -> None:
    assert result_of(ask_for_time, 0.2) == "done"


def test_what_is_no_report_ends_the_child_and_what_came_before_counts() -> None:
    with Child.fork(lambda channel: (channel.sendall(b'{"a": 1}\nnoise\n'), time.sleep(3600))) as child:
        assert list(child.reports(20.0)) == [{"a": 1}]
        assert child.failure().detail == "wrote what is no report"


@pytest.mark.parametrize(
    ("code", "said", "cause"),
    [
        (-11, "", "killed by SIGSEGV (Segmentation fault)"),
        (-40, "bye", "killed by signal 40 (Real-time signal 6): bye"),
        (3, "", "ended early with exit code 3"),
        (1, "ValueError: no", "ValueError: no"),
    ],
)
def test_causes_of_death(code: int, said: str, cause: str) -> None:
    assert cause_of_death(code, said) == cause


def test_one_number_costs_itself_and_the_next_child_goes_on() -> None:
    started: list[list[int]] = []

    def work(report: Report, numbers: Sequence[int]) -> None:
        for n in numbers:
            report(begin=n, limit_s=0.3)
            if n == 2:
                os.abort()
            if n == 4:
                time.sleep(3600)
            report(end=n, outcome={"status": "ok"})

    def start(left: Sequence[int]) -> Child:
        started.append([*left])
        return Child.forked(lambda report: work(report, left))

    found = dict(in_succession([1, 2, 3, 4, 5], start, 20.0))
    assert started == [[1, 2, 3, 4, 5], [3, 4, 5], [5]]
    assert [found[n]["status"] for n in (1, 2, 3, 4, 5)] == ["ok", "run_error", "ok", "timeout", "ok"]
    assert "SIGABRT" in found[2]["detail"] and found[4]["detail"] == "running took longer than 0.3 s"


def test_a_child_that_never_begins_is_not_started_again() -> None:
    with pytest.raises(Failed, match="SIGKILL"):
        list(in_succession([1, 2], lambda _: Child.forked(kill_oneself), 20.0))


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        if number < 0:
            raise MeasureError("only upwards")
        self.count += number // (number != 13)
        return self.count

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def sleep(self) -> None:
        time.sleep(3600)


def test_a_service_keeps_its_state_and_answers_in_order() -> None:
    with Service(Counter()) as service:
        first, second = service.begin("add", 1), service.begin("add", 2)
        assert service.ask("add", 3) == 6
        assert (second(), first(), first()) == (3, 1, 1)
        with pytest.raises(MeasureError, match="only upwards"):
            service.ask("add", -1)
        with pytest.raises(MeasureError, match="ZeroDivisionError"):
            service.ask("add", 13)
        assert service.ask("add", 4) == 10


@pytest.mark.parametrize(
    ("method", "message"), [("die", "ended: killed by SIGKILL"), ("sleep", "took longer than 0.2 s")]
)
def test_a_service_that_fails_says_so(method: str, message: str) -> None:
    with Service(Counter()) as service, pytest.raises(MeasureError, match=message):
        service.ask(method, patience_s=20.0 if method == "die" else 0.2)


SCRIPT = """
    import os, time
    from gnnperf.measure.supervisor import Child

    def family(report):
        with Child.forked(lambda report: (report(pid=os.getpid()), time.sleep(3600))) as grandchild:
            for message in grandchild.reports(None):
                report(pids=[os.getpid(), message["pid"]])

    with Child.forked(family) as child:
        for message in child.reports(None):
            print(*message["pids"], flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_who_started_it(number: signal.Signals) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert client.stdout is not None
    pids = [int(pid) for pid in client.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    client.send_signal(number)
    client.communicate(timeout=20)
    end = time.monotonic() + 20
    while any(map(alive, pids)):
        assert time.monotonic() < end
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
