"""Processes that may crash, hang or eat memory: how they are started, followed and ended, and why they died.

Everything that is measured runs in a child. A fork starts in milliseconds and shares what this process has
loaded (arrays, TVM with compiled code in memory), but not its threads: it is started before libraries start
any. A module that is spawned starts from nothing, with an environment of its own, where OpenMP reads its
number of threads.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import gnnperf
from gnnperf.errors import MeasureError, last_line
from gnnperf.measure.confine import SUPERVISOR, die_with_parent, prefer_others, prefer_this_process
from gnnperf.measure.measurement import Measurement, Status
from gnnperf.measure.protocol import LONGEST_SLEEP_S, receive_object, send_object

Message = dict[str, Any]
Report = Callable[..., None]
"""Tells the parent its keywords, as one line of JSON. `limit_s` among them says how long the child may take
until the next one; None: as long as it needs."""
Number = TypeVar("Number", int, str)

_to_parent: socket.socket | None = None
"""This process's end of the channel to the one that started it; forks of its own close it."""


class Failed(Exception):
    """No good answer came. status: of a measurement; detail: why, in one line."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(status, detail)
        self.status: Status = status
        self.detail = detail

    def __str__(self) -> str:
        return self.detail

    @property
    def measurement(self) -> Measurement:
        """Without times."""
        return Measurement(self.status, detail=self.detail)


class Child:
    """A process in a group of its own, which ends with the context, or with this process.

    channel: this process's end of a two-way connection. What the child writes to its standard error is kept,
    for the cause of its death; its standard output goes nowhere.
    """

    def __init__(
        self, pid: int, wait: Callable[[float | None], int], channel: socket.socket, errors: int
    ) -> None:
        self.pid, self.channel = pid, channel
        self._wait, self._errors = wait, errors
        self._pending = b""
        self._garbled = self._outranked = False
        self._code: int | None = None
        self._said = ""

    @classmethod
    def fork(cls, work: Callable[[socket.socket], object]) -> Self:
        """`work`, given its end of the channel, in a fork of this process, which ends when `work` does: with
        exit code 1 where that raised."""
        ours, theirs = socket.socketpair()
        errors = os.memfd_create("stderr")
        parent = os.getpid()
        with warnings.catch_warnings():
            # LanceDB warns of stores used after a fork: `work` uses none.
            warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
            pid = os.fork()
        if pid == 0:
            _work_in_fork(work, parent, ours, theirs, errors)
        theirs.close()
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)  # here and in the child: whichever runs first
        return cls(pid, partial(_wait_for_fork, pid), ours, errors)

    @classmethod
    def forked(cls, work: Callable[[Report], object]) -> Self:
        """A fork that only reports."""
        return cls.fork(lambda channel: work(reporter(channel)))

    @classmethod
    def spawn(cls, module: str, environment: Mapping[str, str] | None = None) -> Self:
        """`python -m module`, with additions to the environment; the module calls `spawned`."""
        ours, theirs = socket.socketpair()
        errors = os.memfd_create("stderr")
        with theirs:
            command, path = run_module(module, str(theirs.fileno()), str(os.getpid()))
            process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # Ctrl-C in the terminal reaches this process alone
                env={**os.environ, **(environment or {}), **path},
            )
        return cls(process.pid, process.wait, ours, errors)

    def listen(
        self, timeout_s: float | None = None, client: socket.socket | None = None
    ) -> list[Message] | None:
        """What it reported, waiting for that at most so long. [] where it said nothing; None where nothing
        more is to come: it ended, or what came is no report. Raises EOFError where `client`, for whom this
        is done, hangs up."""
        if self._garbled:
            return None
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        poller = select.poll()
        for peer in filter(None, (self.channel, client)):
            poller.register(peer, select.POLLIN)
        while True:
            left_s = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
            ready = [found for found, _ in poller.poll(1000 * min(left_s, LONGEST_SLEEP_S))]
            if client is not None and client.fileno() in ready:
                raise EOFError
            if not ready:
                if left_s > LONGEST_SLEEP_S:
                    continue
                return []
            try:
                data = self.channel.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                return None
            *lines, self._pending = (self._pending + data).split(b"\n")
            messages = []
            for line in lines:
                message = _message(line)
                if not message:
                    self._garbled = True  # what runs there found the channel
                    break
                messages.append(message)
            if messages or self._garbled:
                return messages or None

    def reports(self, limit_s: float | None, client: socket.socket | None = None) -> Iterator[Message]:
        """What it reports, until it ends. Raises Failed when it says nothing for `limit_s`, or for what its
        last report asked for; and EOFError as `listen` does."""
        while messages := self.listen(limit_s, client):
            for message in messages:
                limit_s = message.pop("limit_s", limit_s)
                yield message
        if messages is not None:
            raise Failed("timeout", f"took longer than {limit_s:g} s")

    def outrank(self) -> None:
        """Run this process before the child, which runs before all others: it can always be ended."""
        self._outranked = True
        prefer_this_process(SUPERVISOR)

    def failure(self) -> Failed:
        """Why it died; it is ended if it lives."""
        self.end(0.0 if self._garbled else 0.5)  # it may have hung up and not quite ended
        assert self._code is not None
        cause = "wrote what is no report" if self._garbled else cause_of_death(self._code, self._said)
        return Failed("run_error", cause)

    def end(self, patience_s: float = 0.0) -> None:
        """End it, and what it started. patience_s: given to one that ends by itself when it is hung up on."""
        if self._code is not None:
            return
        self.channel.close()
        try:
            if patience_s:
                with suppress(subprocess.TimeoutExpired):
                    self._code = self._wait(patience_s)
        finally:
            kill_group(self.pid)
            if self._outranked:
                prefer_others()
            if self._code is None:
                self._code = self._wait(None)
            self._said = _last_words(self._errors)
            os.close(self._errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Service:
    """An object that lives in a fork of this process, where its methods are called, one after the other.

    Every method raises MeasureError: as it was raised there, with the last line of another exception, or
    where the process ended or an answer took too long.
    """

    def __init__(self, serving: object, afresh: bool = False) -> None:
        """afresh: serve in another thread than the first, for libraries that keep a pool for each thread
        (TVM): where this process has used its own, what a fork has of it is dead."""
        self.child = Child.fork(partial(_serve_afresh if afresh else _serve, serving))
        self._asked = 0
        self._answers: list[Any] = []

    def ask(self, method: str, *arguments: Any, patience_s: float | None = None) -> Any:
        """What the method returns."""
        return self.begin(method, *arguments, patience_s=patience_s)()

    def begin(self, method: str, *arguments: Any, patience_s: float | None = None) -> Callable[[], Any]:
        """Ask, and go on: what is returned waits for the answer, and may be called again."""
        self._exchange(lambda channel: send_object(channel, (method, arguments)), None)
        number = self._asked
        self._asked += 1

        def answer() -> Any:
            while len(self._answers) <= number:
                self._answers.append(self._exchange(receive_object, patience_s))
            found = self._answers[number]
            if isinstance(found, MeasureError):
                raise found
            return found

        return answer

    def close(self) -> None:
        """End the process, and with it all that it started."""
        self.child.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, talk: Callable[[socket.socket], Any], patience_s: float | None) -> Any:
        try:
            self.child.channel.settimeout(patience_s)
            return talk(self.child.channel)
        except TimeoutError:
            raise MeasureError(f"the process that measures took longer than {patience_s:g} s") from None
        except (EOFError, OSError):
            raise MeasureError(f"the process that measures ended: {self.child.failure()}") from None


def _serve(serving: object, channel: socket.socket) -> None:
    while True:
        method, arguments = receive_object(channel)
        try:
            answer: Any = getattr(serving, method)(*arguments)
        except MeasureError as error:
            answer = error
        except Exception as error:
            answer = MeasureError(last_line(error))
        send_object(channel, answer)


def _serve_afresh(serving: object, channel: socket.socket) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_serve, serving, channel).result()


def run_module(module: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command that runs a module of ours, and what it needs of the environment."""
    package = str(Path(gnnperf.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    # -P: a file in the user's folder must not stand in for a module of ours.
    return [sys.executable, "-P", "-m", module, *arguments], {"PYTHONPATH": path}


def spawned(*, with_parent: bool = True) -> socket.socket:
    """In a module that was spawned: its end of the channel. with_parent: end when the thread that spawned it
    does; else the module must watch the channel."""
    global _to_parent
    descriptor, parent = map(int, sys.argv[1:3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    if with_parent:
        die_with_parent(parent)
    _to_parent = socket.socket(fileno=descriptor)
    return _to_parent


def reporter(channel: socket.socket) -> Report:
    """What a child reports with: lines that are short enough to be sent whole, from several threads too."""
    return lambda **message: channel.sendall(json.dumps(message).encode() + b"\n")


def result_of(work: Callable[[Report], Any], limit_s: float) -> Any:
    """What `work` returns, in plain values, done in a fork. Raises Failed."""
    with Child.forked(lambda report: report(result=work(report))) as child:
        for message in child.reports(limit_s):
            if "result" in message:
                return message["result"]
        raise child.failure()


def in_succession(
    numbers: Sequence[Number], start: Callable[[Sequence[Number]], Child], first_s: float | None
) -> Iterator[tuple[Number, Message]]:
    """(number, outcome) of all numbers, or what stands for them, from children that each go on until one
    kills them.

    start: a child that takes numbers in their order and reports `begin`, then `end` and `outcome`, of each.
    One that dies, or takes too long, costs the number that it had begun. first_s: until it begins. Raises
    Failed where a child does not begin with any.
    """
    left = list(numbers)
    while left:
        begun: Number | None = None
        began = False
        with start(left) as child:
            try:
                for message in child.reports(first_s):
                    begun = message.get("begin")
                    began = began or begun is not None
                    if "end" in message:
                        left.remove(message["end"])
                        yield message["end"], message["outcome"]
                    if not left:
                        return
                failure = child.failure()
            except Failed as hung:
                failure = hung
        if not began:
            raise failure
        if begun is not None:
            left.remove(begun)
            detail = f"running {failure.detail}" if failure.status == "timeout" else failure.detail
            yield begun, {"status": failure.status, "detail": detail}


def kill_group(pid: int) -> None:
    """End a process and what it started in its group, without a chance to tidy up."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def cause_of_death(code: int, said: str = "") -> str:
    """Why a process died. code: its exit code, negative after a signal; said: its last words."""
    if code == 1 and said:  # Python's, after an exception
        return said
    cause = f"ended early with exit code {code}"
    if code < 0:
        known = -code in {number.value for number in signal.Signals}
        name = signal.Signals(-code).name if known else f"signal {-code}"
        cause = f"killed by {name} ({signal.strsignal(-code)})"
    return f"{cause}: {said}" if said else cause


def _work_in_fork(
    work: Callable[[socket.socket], object],
    parent: int,
    ours: socket.socket,
    theirs: socket.socket,
    errors: int,
) -> NoReturn:
    global _to_parent
    code = 1
    try:
        os.setpgid(0, 0)
        die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        faulthandler.disable()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor, target in enumerate((nowhere, nowhere, errors)):
            os.dup2(target, descriptor)
        ours.close()
        if _to_parent is not None:
            _to_parent.close()
        _to_parent = theirs
        work(theirs)
        code = 0
    except (EOFError, ConnectionError):
        pass  # nobody listens any more
    except BaseException as error:
        with suppress(OSError):
            os.write(2, f"{last_line(error)}\n".encode())
    finally:
        os._exit(code)


def _wait_for_fork(pid: int, patience_s: float | None) -> int:
    """Its exit code. Raises TimeoutExpired where it lives on."""
    deadline = None if patience_s is None else time.monotonic() + patience_s
    while deadline is not None and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(str(pid), patience_s or 0.0)
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _message(line: bytes) -> Message | None:
    """A line of a report; None where it is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _last_words(errors: int) -> str:
    size = os.lseek(errors, 0, os.SEEK_END)
    text = os.pread(errors, 1000, max(0, size - 1000)).decode(errors="replace").strip()
    return text.rpartition("\n")[2][:200]
