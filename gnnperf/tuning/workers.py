"""Tasks in processes of their own, some at a time: while one is being timed, another compiles.

Timing itself is serialised by the machine's lock. A task that crashes, or that eats memory over time
as DaCe does, costs itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from gnnperf.measure.confine import die_with_parent

Task = TypeVar("Task")
Send = Callable[[Any], None]


def each(
    tasks: Sequence[Task],
    work: Callable[[Task, Send], None],
    receive: Callable[[Any], None],
    processes: int = 2,
) -> Generator[tuple[Task, int], None, None]:
    """Run `work(task, send)` for every task, each in a fork of this process, `processes` at a time.

    What a task sends, `receive` gets here, in order. Yields (task, exit code) whenever one has ended: 0
    when `work` returned, negative after a signal. Started in order; a task sees what this process knew
    when it was started. When the caller stops early, or is interrupted, the tasks are too.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tasks))
    running: dict[Connection, tuple[Any, Task]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                task = waiting.pop()
                reader, writer = context.Pipe(duplex=False)
                process = context.Process(
                    target=_run, args=(work, task, writer.send, os.getpid()), daemon=True
                )
                process.start()
                writer.close()  # the child's end is the only one: its death ends the stream
                running[reader] = process, task
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                try:
                    message = ready.recv()
                except EOFError:
                    process, task = running.pop(ready)
                    process.join()
                    ready.close()
                    yield task, int(process.exitcode)
                else:
                    receive(message)
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join()


def _run(work: Callable[[Task, Send], None], task: Task, send: Send, parent: int) -> None:
    # The parent decides what Ctrl-C means, and ends its tasks by SIGTERM: they then tidy up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    die_with_parent(parent)
    try:
        work(task, send)
    except KeyboardInterrupt:
        os._exit(1)
