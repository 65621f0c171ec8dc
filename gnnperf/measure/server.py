"""The measuring server: `python -m gnnperf.measure.server`, spawned by `Runner`.

A light process of its own (numpy and ctypes; no torch, and it never runs OpenMP, whose threads
do not survive a fork) that holds the arrays and forks one child per job. It outlives any crash of
a child, and ends when its client closes the socket or dies.
"""

from __future__ import annotations

import itertools
import mmap
import socket
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnperf.measure import candidate
from gnnperf.measure.arrays import Bytes, Layout
from gnnperf.measure.protocol import receive, send
from gnnperf.measure.supervisor import Child, Failed, spawned


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
        with Child.forked(lambda report: candidate.work(job, self.blobs, outbox, report)) as child:
            child.outrank()  # not before: what it receives must not hold up what others time
            result = self._follow(child, job["limits"]["timeout_s"])
        if outbox is None or result["status"] != "ok":
            return (result,)
        ends = np.cumsum([0, *sizes])
        return (result, *(outbox[a:b] for a, b in itertools.pairwise(ends)))

    def _follow(self, child: Child, limit_s: float) -> dict[str, Any]:
        """The result that a child reports, or how it failed. Raises EOFError when the client is gone."""
        stage, memory_bytes = "load", 0
        try:
            for message in child.reports(limit_s, self.client):
                if "status" in message:
                    return {"blame": _blame(stage), **message}
                stage = message.get("stage", stage)
                memory_bytes = message.get("memory_bytes", memory_bytes)
            failure = child.failure()
        except Failed as timeout:
            failure = timeout
        detail = failure.detail
        if "bad_alloc" in detail:
            detail += f"; it may allocate {memory_bytes / 2**30:.3g} GiB of what this machine has free"
        return {"status": failure.status, "detail": detail, "blame": _blame(stage)}


def main() -> None:
    Server(spawned(with_parent=False)).serve()  # the client's thread may end before the client does


if __name__ == "__main__":
    main()
