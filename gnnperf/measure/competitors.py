"""Several implementations of one kernel, verified and timed in turn: compiled libraries and Python functions.

Every contender has a process of its own. In one process their thread pools would meet: OpenBLAS's
threads go on spinning for milliseconds after a product, OpenMP's after a loop, and torch brings an
OpenMP runtime of its own; and a crash would cost all of them. All get the same arrays, number of
threads and scheduling class.

They take turns, under the lock of the machine. A turn warms up for long enough that the threads of the
one before have gone to sleep, then times runs; outputs are restored before each run, outside the timing.
Runs of one turn share their surroundings, so that only the median of a turn counts as a sample. The order
is turned round in every round. All of it is repeated with fresh processes, because memory layout and the
placement of threads differ between processes and no single one can see it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from numpy.typing import NDArray

import gnnperf
from gnnperf.devices import MachineLock
from gnnperf.measure import Library, Measurement
from gnnperf.measure.arrays import Bytes, as_arrays, describe
from gnnperf.measure.confine import available_threads, thread_environment
from gnnperf.measure.measurement import Status, pool
from gnnperf.measure.protocol import receive, send
from gnnperf.measure.statistics import relative_half_width

Turn = Callable[[], float]
"""Gives the seconds of one run, whenever it is called."""


class Failed(Exception):
    """A competitor takes no part, or no longer: (status, detail)."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(status, detail)
        self.status: Status = status
        self.detail = detail

    @property
    def measurement(self) -> Measurement:
        """What is told of the competitor."""
        return Measurement(self.status, detail=self.detail)


class Competitor(Protocol):
    """Another implementation of tasks: what else one would have called.

    Attributes:
        name: for people, as in `--beside`.
    """

    @property
    def name(self) -> str: ...

    def play(self, task: Any, stack: contextlib.ExitStack) -> Turn:
        """Start the implementation of a task, verified, until the stack closes. Raises Failed."""


@contextlib.contextmanager
def joined(
    competitors: Sequence[Competitor], task: Any
) -> Iterator[tuple[dict[str, Turn], dict[str, Measurement]]]:
    """(those that take part, why the others do not), by name."""
    turns: dict[str, Turn] = {}
    absent: dict[str, Measurement] = {}
    with contextlib.ExitStack() as stack:
        for competitor in competitors:
            try:
                turns[competitor.name] = competitor.play(task, stack)
            except Failed as failure:
                absent[competitor.name] = failure.measurement
        yield turns, absent


@dataclass(frozen=True)
class PythonFunction:
    """Function `name` of the file `path`, which needs `package` ("numpy", "numba", "torch")."""

    path: Path
    name: str
    package: str


@dataclass(frozen=True)
class Problem:
    """What all contenders compute. `data`: arrays and scalars by name; `outputs` are updated from their
    values in `data`; `reference`: what is right. `reduction_length` widens the tolerance."""

    data: Mapping[str, Any]
    symbols: Mapping[str, int]
    outputs: Sequence[str]
    reference: Mapping[str, NDArray[Any]]
    reduction_length: int = 1


@dataclass(frozen=True)
class Effort:
    """How long to measure. processes: fresh processes per contender. rounds: of turns, in each of them at
    least (six samples are the fewest whose interval reaches 95%). budget_s: wall time of the turns of one
    set of processes, once the rounds are done. target: relative half-width of the interval of every median
    at which timing stops. timeout_s: of one answer (loading, compiling and verifying; a turn)."""

    processes: int = 3
    rounds: int = 6
    budget_s: float = 4.0
    target: float = 0.01
    warm_up_s: float = 0.03
    timed_s: float = 0.03
    timeout_s: float = 300.0


def measure_side_by_side(
    contenders: Mapping[str, Library | PythonFunction],
    problem: Problem,
    effort: Effort,
    threads: int | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> dict[str, Measurement]:
    """A measurement per contender, in their order. Never raises for what a contender does: one that is
    wrong, crashes or hangs has that status, one whose package is not installed is "not_applicable"."""
    results: dict[str, Measurement] = {}
    samples: dict[str, list[list[float]]] = {name: [] for name in contenders}
    with tempfile.TemporaryDirectory(prefix="gnnperf-cases-") as folder:
        start = Starter(problem, effort, threads or available_threads(), folder)
        for name, contender in contenders.items():
            notify(f"verifying {name}")
            if failure := _rehearse(start, contender):
                results[name] = failure
        for _ in range(effort.processes):
            notify("timing " + ", ".join(n for n in contenders if n not in results))
            running = {n: c for n, c in contenders.items() if n not in results}
            for name, outcome in _play(start, running).items():
                if isinstance(outcome, Measurement):
                    results[name] = outcome
                else:
                    samples[name].append(outcome)
    for name in contenders:
        if name not in results:
            results[name] = pool([Measurement.from_samples(s) for s in samples[name]])
    return {name: results[name] for name in contenders}


def _rehearse(start: Starter, contender: Library | PythonFunction) -> Measurement | None:
    """Verify without timing, so that nobody compiles while another is timed; None where all is well."""
    if isinstance(contender, PythonFunction) and importlib.util.find_spec(contender.package) is None:
        return Measurement("not_applicable", detail=f"{contender.package} is not installed")
    try:
        with start(contender):
            return None
    except Failed as failure:
        return failure.measurement


def _play(
    start: Starter, contenders: Mapping[str, Library | PythonFunction]
) -> dict[str, list[float] | Measurement]:
    """One set of processes: the samples of every contender in seconds, or how it failed."""
    outcomes: dict[str, list[float] | Measurement] = {}
    effort = start.effort
    with contextlib.ExitStack() as stack:
        players: dict[str, Player] = {}
        samples: dict[str, list[float]] = {}

        def attempt(name: str, work: Callable[[], None]) -> None:
            try:
                work()
            except Failed as failure:
                outcomes[name] = failure.measurement
                players.pop(name, None)

        for name, contender in contenders.items():
            attempt(name, lambda n=name, c=contender: players.update({n: stack.enter_context(start(c))}))  # type: ignore[misc]
            samples[name] = []
        with MachineLock():
            started, rounds = time.monotonic(), 0
            while players:
                for name in list(players)[:: 1 if rounds % 2 == 0 else -1]:
                    attempt(name, lambda n=name: samples[n].append(players[n].turn()))  # type: ignore[misc]
                rounds += 1
                if rounds < effort.rounds:
                    continue
                known = all(relative_half_width(samples[name]) <= effort.target for name in players)
                if known or time.monotonic() - started > effort.budget_s:
                    break
        outcomes.update({name: samples[name] for name in players})
    return outcomes


@dataclass(frozen=True)
class Starter:
    """Starts contenders on one problem. `folder` holds what they compile, for as long as they last."""

    problem: Problem
    effort: Effort
    threads: int
    folder: str

    def __call__(self, contender: Library | PythonFunction) -> Player:
        environment = {
            **thread_environment(self.threads),
            "NUMBA_NUM_THREADS": str(self.threads),
            "NUMBA_CACHE_DIR": self.folder,
        }
        return Player(_job(contender, self.problem), self.effort, environment)


class Player:
    """The process of one contender, loaded and verified. Raises Failed."""

    def __init__(
        self, job: tuple[dict[str, Any], list[Any]], effort: Effort, environment: Mapping[str, str]
    ) -> None:
        self._effort = effort
        self._socket, theirs = socket.socketpair()
        package = str(Path(gnnperf.__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        module = f"{__package__}.competitor_process"
        with theirs:
            self._process = subprocess.Popen(
                # -P: a file in the user's folder must not stand in for a module of ours.
                [sys.executable, "-P", "-m", module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in the terminal reaches us alone
                env={**os.environ, **environment, "PYTHONPATH": path},
            )
        try:
            self._ask(*job)
        except BaseException:
            self.close()
            raise

    def turn(self) -> float:
        """Median runtime of one turn, in seconds."""
        return float(
            self._ask({"warm_up_s": self._effort.warm_up_s, "timed_s": self._effort.timed_s})["median_s"]
        )

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Player:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, message: dict[str, Any], blobs: Sequence[Any] = ()) -> dict[str, Any]:
        self._socket.settimeout(self._effort.timeout_s)
        try:
            send(self._socket, message, *blobs)
            answer, _ = receive(self._socket)
        except TimeoutError:
            raise Failed("timeout", f"no answer in {self._effort.timeout_s:g} s") from None
        except (EOFError, ConnectionError):
            raise Failed("run_error", self._cause()) from None
        if answer.get("status", "ok") != "ok":
            raise Failed(answer["status"], answer["detail"])
        return answer

    def _cause(self) -> str:
        code = self._process.wait()
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _job(contender: Library | PythonFunction, problem: Problem) -> tuple[dict[str, Any], list[Any]]:
    """The first message to a contender, and the memory of its arrays."""
    blobs: dict[str, Bytes] = {}
    library = contender.to_dict() if isinstance(contender, Library) else None
    function = None
    if isinstance(contender, PythonFunction):
        function = {"path": str(contender.path), "name": contender.name, "package": contender.package}
    job = {
        "library": library,
        "function": function,
        "data": describe(as_arrays(problem.data), blobs),
        "reference": describe(problem.reference, blobs),
        "symbols": dict(problem.symbols),
        "outputs": list(problem.outputs),
        "inouts": list(problem.outputs),
        "reduction_length": problem.reduction_length,
    }
    return {**job, "keys": list(blobs)}, list(blobs.values())
