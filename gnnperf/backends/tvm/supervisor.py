"""Follows the process that compiles and runs a batch of candidates, and ends what takes too long."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from gnnperf.backends.tvm.batch import Batch, cause
from gnnperf.backends.tvm.outcome import Outcome
from gnnperf.measure.confine import WATCHER, prefer_others, prefer_this_process

_LOOK_MS = 200
"""How often the time limits are looked at."""

_HANGS = 5
"""So many times the limit for compiling, in wall time, and it is taken to hang."""


class Watch:
    """Follows one batch process. suspects: candidates that must be tried again alone."""

    def __init__(self, batch: Batch, client: Connection) -> None:
        """client: of this process alone, which the batch's closes."""
        self.limits = batch.limits
        self.suspects: set[int] = set()
        self._numbers = [n for n, _ in batch.jobs]
        self._threads = batch.threads
        self._building: dict[int, tuple[float, float]] = {}  # number -> clock and processor time at its begin
        self._built_s: dict[int, float] = {}
        self._running: tuple[int, int, float] | None = None  # number, process, when it began
        self._outcomes: dict[int, Outcome] = {}
        self._reader, writer = os.pipe()
        parent, self._pid = os.getpid(), os.fork()
        if self._pid == 0:
            os.close(self._reader)
            client.close()
            replace(batch, pipe=writer).work(parent)
        os.close(writer)
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(self._pid, self._pid)  # here and in the child: whichever runs first

    def follow(self) -> Mapping[int, Outcome]:
        """Outcomes of the candidates that were decided; a crash or a hang leaves some undecided."""
        ended = 0
        try:
            self._read()
        finally:
            prefer_others()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            _, ended = os.waitpid(self._pid, 0)
            os.close(self._reader)
        if len(self._building) == 1:
            (number,) = self._building
            self._decide(number, Outcome("build_error", detail=cause(ended)))
        self.suspects |= set(self._building) - set(self._outcomes)
        if not self._outcomes and not self.suspects:  # it did nothing at all: do not try for ever
            for number in self._numbers:
                self._decide(number, Outcome("run_error", detail=cause(ended)))
        return self._outcomes

    def _read(self) -> None:
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        pending = b""
        while True:
            busy = bool(self._building) or self._running is not None
            if not poller.poll(_LOOK_MS if busy else None):  # waiting for the machine is free
                if not self._overdue():
                    return
                continue
            data = os.read(self._reader, 1 << 16)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))

    def _overdue(self) -> bool:
        """End what takes too long; False where that ends the whole process."""
        now = time.monotonic()
        if self._running is not None and now >= self._running[2] + self.limits.run_s:
            number, pid, _ = self._running
            self._decide(
                number, Outcome("timeout", detail=f"running took longer than {self.limits.run_s:g} s")
            )
            self._running = None
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        late = [n for n, begun in self._building.items() if self._is_late(*begun)]
        for number in late:
            detail = f"compiling took longer than {self.limits.build_s:g} s"
            self._decide(number, Outcome("timeout", detail=detail))
        if late:  # threads cannot be ended: the others of this process are compiled again
            self._building.clear()
        return not late

    def _is_late(self, began: float, used_s: float) -> bool:
        """On a busy machine, what counts is the share of the processors that the compiler got."""
        spent_s = (_cpu_s(self._pid) - used_s) / self._threads
        waited_s = time.monotonic() - began
        return spent_s >= self.limits.build_s or waited_s >= _HANGS * self.limits.build_s

    def _hear(self, message: Mapping[str, Any]) -> None:
        number = message.get("n", -1)
        if message["event"] == "building":
            self._building[number] = time.monotonic(), _cpu_s(self._pid)
        elif message["event"] == "built":
            self._building.pop(number, None)
            self._built_s[number] = message["s"]
        elif message["event"] == "running":
            self._running = number, message["pid"], time.monotonic()
            prefer_this_process(WATCHER)  # it can always end what it watches
        elif message["event"] == "ended":
            self._building.pop(number, None)
            self._running = None
            self._decide(number, Outcome.from_dict(message["outcome"]))

    def _decide(self, number: int, outcome: Outcome) -> None:
        build_s = self._built_s.get(number, 0.0)
        self._outcomes.setdefault(number, replace(outcome, build_s=build_s))


def _cpu_s(pid: int) -> float:
    """Processor time that a process of this user has used."""
    return time.clock_gettime(((~pid) << 3) | 2)  # CPUCLOCK_SCHED of a process, see clock_getcpuclockid
