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
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from gnnperf.measure.arrays import Bytes, as_arrays, describe
from gnnperf.measure.confine import available_threads, thread_environment
from gnnperf.measure.interleaved import Pace, Turn, in_turns
from gnnperf.measure.library import Library
from gnnperf.measure.measurement import Measurement, pool
from gnnperf.measure.problem import Problem
from gnnperf.measure.protocol import receive, send
from gnnperf.measure.supervisor import Child, Failed
from gnnperf.measure.team_copy import team_copy_library


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
    """Function `name` of the file `path`, which needs `package` ("numpy", "numba", "torch"). arguments: in
    plain values, beside the arrays and scalars of the problem. compiled: "numba" or "torch" where it is
    compiled by that first; else empty. same: further names of arrays."""

    path: Path
    name: str
    package: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    compiled: str = ""
    same: Mapping[str, str] = field(default_factory=dict)


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
    runs: dict[str, list[Measurement]] = {name: [] for name in contenders}
    with tempfile.TemporaryDirectory(prefix="gnnperf-cases-") as folder:
        begin = partial(start, problem, effort, threads or available_threads(), folder)
        for _ in range(effort.processes):
            running = {n: c for n, c in contenders.items() if n not in results}
            for name, run in _play(begin, running, effort, notify).items():
                runs[name].append(run)
                if run.status != "ok":
                    results[name] = run
    return {name: results.get(name) or pool(runs[name]) for name in contenders}


def _play(
    begin: Callable[[Library | PythonFunction], Player],
    contenders: Mapping[str, Library | PythonFunction],
    effort: Effort,
    notify: Callable[[str], None],
) -> dict[str, Measurement]:
    """What one set of processes gives, or how they failed. Nobody compiles while another is timed."""
    failed: dict[str, Measurement] = {}
    turns: dict[str, Turn] = {}
    with contextlib.ExitStack() as stack:
        for name, contender in contenders.items():
            notify(f"starting {name}")
            try:
                turns[name] = stack.enter_context(contextlib.closing(begin(contender))).turn
            except Failed as failure:
                failed[name] = failure.measurement
        notify(f"timing {', '.join(turns)}")
        pace = Pace(effort.rounds, effort.budget_s, effort.target, least=effort.rounds)
        return {**failed, **in_turns(turns, pace)}


def start(
    problem: Problem, effort: Effort, threads: int, folder: str, contender: Library | PythonFunction
) -> Player:
    """A contender on a problem, loaded and verified. folder: of what it compiles. Raises Failed."""
    if isinstance(contender, PythonFunction) and importlib.util.find_spec(contender.package) is None:
        raise Failed("not_applicable", f"{contender.package} is not installed")
    environment = {
        **thread_environment(threads), "NUMBA_NUM_THREADS": str(threads), "NUMBA_CACHE_DIR": folder
    }  # fmt: skip
    if _is_numpy(contender):
        # NumPy has no other threads. Numba's and torch's would compete with those of OpenBLAS.
        environment["OPENBLAS_NUM_THREADS"] = str(threads)
    return Player(_job(contender, problem, threads), effort, environment)


class Player:
    """The process of one contender, loaded and verified. Raises Failed."""

    def __init__(
        self, job: tuple[dict[str, Any], list[Any]], effort: Effort, environment: Mapping[str, str]
    ) -> None:
        self._effort = effort
        self._child = Child.spawn(f"{__package__}.competitor_process", environment)
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
        self._child.end()

    def _ask(self, message: dict[str, Any], blobs: Sequence[Any] = ()) -> dict[str, Any]:
        channel = self._child.channel
        channel.settimeout(self._effort.timeout_s)
        try:
            send(channel, message, *blobs)
            answer, _ = receive(channel)
        except TimeoutError:
            raise Failed("timeout", f"no answer in {self._effort.timeout_s:g} s") from None
        except (EOFError, ConnectionError):
            raise self._child.failure() from None
        if answer.get("status", "ok") != "ok":
            raise Failed(answer["status"], answer["detail"])
        return answer


def _is_numpy(contender: Library | PythonFunction) -> bool:
    return isinstance(contender, PythonFunction) and contender.package == "numpy"


def _job(
    contender: Library | PythonFunction, problem: Problem, threads: int
) -> tuple[dict[str, Any], list[Any]]:
    """The first message to a contender, and the memory of its arrays."""
    blobs: dict[str, Bytes] = {}
    library = contender.to_dict() if isinstance(contender, Library) else None
    function = None
    if isinstance(contender, PythonFunction):
        function = {**asdict(contender), "path": str(contender.path)}
    several = threads > 1 and not _is_numpy(contender)
    job = {
        "library": library,
        "function": function,
        "data": describe(as_arrays(problem.inputs), blobs),
        "reference": describe(problem.reference, blobs),
        "outputs": list(problem.outputs),
        "inouts": list(problem.outputs),
        "updated": list(problem.updated),
        "reduction_length": problem.reduction_length,
        "quantised": list(problem.quantised),
        "team_copy": team_copy_library() if problem.updated and several else None,
    }
    return {**job, "keys": list(blobs)}, list(blobs.values())
