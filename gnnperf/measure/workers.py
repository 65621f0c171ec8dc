"""Tasks in processes of their own, some at a time: while one is being timed, another compiles.

Timing itself is serialised by the machine's lock. A task that crashes, or that eats memory over time
as DaCe does, costs itself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from gnnperf.measure.confine import die_with_parent
from gnnperf.measure.protocol import LONGEST_SLEEP_S

Task = TypeVar("Task")
Result = TypeVar("Result")
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
                readers = (reader, *running)
                process = context.Process(
                    target=_run, args=(work, task, writer.send, readers, os.getpid()), daemon=True
                )
                process.start()
                writer.close()  # the child's end is the only one: its death ends the stream
                running[reader] = process, task
            for ready in wait(list(running), LONGEST_SLEEP_S):
                assert isinstance(ready, Connection)
                try:
                    message = ready.recv()
                except (EOFError, OSError):  # it ended, or was ended in the middle of a message
                    process, task = running.pop(ready)
                    process.join()
                    ready.close()
                    yield task, int(process.exitcode)
                else:
                    receive(message)
    finally:
        for reader, (process, _) in running.items():
            process.terminate()
            reader.close()  # what ignores that ends with the next that it sends
        for process, _ in running.values():
            process.join()


def spread(jobs: Sequence[Callable[[], Result]], processes: int) -> dict[int, Result]:
    """What every job returns, by its place. Forks of this process take a share each, where it may have any.

    They only use this thread: those of TVM and torch do not live on in a fork. What something kills is
    missing.
    """
    processes = min(processes, len(jobs))
    if processes <= 1 or multiprocessing.current_process().daemon:  # whose processes may have none
        return {place: job() for place, job in enumerate(jobs)}

    def work(places: Sequence[int], send: Send) -> None:
        gc.disable()  # a collection would write to, and so copy, all that this process shares with its parent
        for place in places:
            send((place, jobs[place]()))

    found: dict[int, Result] = {}
    shares = [range(first, len(jobs), processes) for first in range(processes)]
    for _ in each(shares, work, lambda result: found.update([result]), processes):
        pass
    return found


def spawned(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    begin: Callable[..., object],
    *given: Any,
) -> Generator[tuple[int, Result], None, None]:
    """Position and result of each task as it is done, in new processes of one thread each, which first
    `begin(*given)`. All of that is of modules that can be imported.

    They are no forks: a fork of a process with threads, such as torch's, may deadlock. When the caller stops
    early, or is interrupted, they end.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (os.getpid(), begin, given))
    try:
        with _spared():
            futures = {pool.submit(work, task): at for at, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    pool.shutdown()


@contextmanager
def _spared() -> Iterator[None]:
    """Processes started inside know nothing of Ctrl-C, not even while Python starts: this one ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int, begin: Callable[..., object], given: Sequence[Any]) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # said before any library reads it
    die_with_parent(parent)
    begin(*given)


def _run(
    work: Callable[[Task, Send], None], task: Task, send: Send, readers: Sequence[Connection], parent: int
) -> None:
    # The parent decides what Ctrl-C means, and ends its tasks by SIGTERM: they then tidy up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    die_with_parent(parent)
    for reader in readers:  # where the parent stops to read, nobody does
        reader.close()
    try:
        work(task, send)
    except KeyboardInterrupt:
        os._exit(1)
