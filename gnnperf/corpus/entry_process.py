"""One piece of work on one entry of a corpus, in a process of its own on another machine.

`python -m gnnperf.corpus.entry_process` reads an `EntryJob` from standard input and writes what it finds to
standard output as it finds it: pickled messages, as `NestCollector` sends them within one machine.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gnnperf.corpus.asked import Asked
from gnnperf.corpus.config import NestConfig, NestEntry
from gnnperf.corpus.nests import NestCollector
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.confine import die_with_parent
from gnnperf.measure.record_log import RelayedLog
from gnnperf.measure.supervisor import run_module

THREADS = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class EntryJob:
    """What the process needs to know. known: of the log, what it is to go on from (`RecordLog.known`).

    config: with the folder that its kernels are in on this machine. portfolio, asked: of the collector.
    parent: process to die with. threads: of the user's OMP_NUM_THREADS; None: all that there are.
    """

    config: NestConfig
    entry: NestEntry
    work: str
    known: Any
    portfolio: Any
    parent: int = 0
    threads: str | None = None
    asked: Asked | None = None


def run_entry(job: EntryJob) -> Iterator[Any]:
    """Messages of a job, run in a process of its own; at the end ("ended", exit code)."""
    command, path = run_module("gnnperf.corpus.entry_process")
    environment = {name: value for name, value in os.environ.items() if name != THREADS} | path
    if job.threads is not None:
        environment[THREADS] = job.threads
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # it died before it had read its job; its exit code says so
                pickle.dump(job, process.stdin)
                process.stdin.close()
            while True:
                try:
                    yield pickle.load(process.stdout)
                except (EOFError, pickle.UnpicklingError):  # it ended, or was ended in the middle of one
                    break
            process.wait()
        finally:
            process.terminate()  # where nobody wants the rest
        yield "ended", process.returncode


def main() -> None:
    """Do the job that standard input describes."""
    job: EntryJob = pickle.load(sys.stdin.buffer)
    die_with_parent(job.parent)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what libraries and kernels print does not get in between

        def send(message: Any) -> None:
            pickle.dump(message, out)
            out.flush()

        with Compiler() as compiler, Runner() as runner:
            log = RelayedLog(job.known, send)
            collector = NestCollector(
                job.config, log, compiler, runner, portfolio=job.portfolio, asked=job.asked
            )
            collector.do(job.entry, job.work, send)


if __name__ == "__main__":
    main()
