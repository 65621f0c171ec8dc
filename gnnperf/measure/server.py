"""The measuring server: `python -m gnnperf.measure.server DESCRIPTOR`, started by `Runner`.

A light process of its own (numpy and ctypes; no torch, and it never runs OpenMP, whose threads
do not survive a fork) that holds the arrays and forks one child per job. It outlives any crash of
a child, and ends when its client closes the socket or dies.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from gnnperf.measure import candidate
from gnnperf.measure.arrays import Bytes, Layout
from gnnperf.measure.confine import WATCHER, die_with_parent, prefer_others, prefer_this_process
from gnnperf.measure.protocol import receive, send


def _blame(stage: str) -> str:
    """Whose fault it is when a child ends in a stage."""
    return {"load": "machine", "wait": "machine", "baseline": "baseline"}.get(stage, "candidate")


class Server:
    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.blobs: dict[str, Bytes] = {}

    def serve(self) -> None:
        """Answer requests until the client is gone."""
        while True:
            try:
                job, blobs = receive(self.client)
                self._keep(job["keep"], dict(zip(job["new"], blobs, strict=True)))
                send(self.client, *self._run(job))
            except (EOFError, ConnectionError):
                return

    def _keep(self, ids: list[str], new: dict[str, Bytes]) -> None:
        """Hold the arrays of the current problem, and no others."""
        self.blobs = {i: new[i] if i in new else self.blobs[i] for i in ids}

    def _run(self, job: Mapping[str, Any]) -> tuple[Any, ...]:
        outbox = None
        sizes = []
        if job["fetch"]:
            sizes = [Layout(*job["data"][name][1:]).nbytes for name in job["outputs"]]
            outbox = np.frombuffer(mmap.mmap(-1, max(1, sum(sizes))), np.uint8)
        notes = os.memfd_create("stderr")
        reader, writer = os.pipe()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            os.close(reader)
            self._child(job, outbox, writer, notes, parent)
        os.close(writer)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)  # here and in the child: whichever runs first
        prefer_this_process(WATCHER)  # not before: what it receives must not hold up what others time
        try:
            result = self._watch(pid, reader, job["limits"])
        finally:
            prefer_others()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            _, ended = os.waitpid(pid, 0)
            os.close(reader)
            said = _last_line(notes)
        if result["status"] == "died":
            result = {**result, "status": "run_error", "detail": _cause(ended, said)}
        if outbox is None or result["status"] != "ok":
            return (result,)
        ends = np.cumsum([0, *sizes])
        return (result, *(outbox[a:b] for a, b in itertools.pairwise(ends)))

    def _child(
        self, job: Mapping[str, Any], outbox: Bytes | None, writer: int, notes: int, parent: int
    ) -> NoReturn:
        def report(message: Mapping[str, Any]) -> None:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[os.write(writer, data) :]

        try:
            os.setpgid(0, 0)
            die_with_parent(parent)
            self.client.close()
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, 0)
            os.dup2(nowhere, 1)
            os.dup2(notes, 2)
            candidate.work(job, self.blobs, outbox, report)
        except BaseException as error:
            with contextlib.suppress(BaseException):
                first = str(error).strip().partition("\n")[0]
                report({"status": "run_error", "detail": f"{type(error).__name__}: {first}"[:300]})
        finally:
            os._exit(0)

    def _watch(self, pid: int, reader: int, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Follow a child's reports to its result; "timeout" when a stage takes too long, "died" when
        it ends without a result. Raises EOFError when the client is gone."""
        poller = select.poll()
        poller.register(reader, select.POLLIN)
        poller.register(self.client, select.POLLIN)  # a client that waits says nothing: it is gone
        deadline: float | None = time.monotonic() + limits["timeout_s"]
        stage, pending = "load", b""
        while True:
            wait_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            ready = [descriptor for descriptor, _ in poller.poll(wait_ms)]
            if self.client.fileno() in ready:
                raise EOFError
            if not ready:
                detail = f"took longer than {limits['timeout_s']:g} s"
                return {"status": "timeout", "detail": detail, "blame": _blame(stage)}
            data = os.read(reader, 1 << 16)
            if not data:
                return {"status": "died", "blame": _blame(stage)}
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                try:
                    message = json.loads(line)
                    if "status" in message:
                        return {"blame": _blame(stage), **message}
                    stage = message["stage"]
                except (ValueError, KeyError, TypeError):  # not from us: the candidate found the pipe
                    return {"status": "died", "blame": _blame(stage)}
                # The timing stage reports itself every half second, or after a run that took longer.
                grace_s = 2 * limits["timeout_s"] + 1.0 if stage == "time" else limits["timeout_s"]
                deadline = None if stage == "wait" else time.monotonic() + grace_s


def _last_line(descriptor: int) -> str:
    """The end of what the child wrote to its standard error; closes it."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    text = os.pread(descriptor, 1000, max(0, size - 1000)).decode(errors="replace").strip()
    os.close(descriptor)
    return text.rpartition("\n")[2][:200]


def _cause(ended: int, said: str) -> str:
    if os.WIFSIGNALED(ended):
        number = os.WTERMSIG(ended)
        cause = f"killed by {signal.Signals(number).name} ({signal.strsignal(number)})"
    else:
        cause = f"ended early with exit code {os.waitstatus_to_exitcode(ended)}"
    return f"{cause}: {said}" if said else cause


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides what Ctrl-C means
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
