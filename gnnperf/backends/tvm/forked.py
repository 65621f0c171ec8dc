"""A process forked from this one, at the other end of a pipe: it ends when this one closes it, or ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import TracebackType
from typing import NoReturn, Self


class Forked:
    """Start it before this process uses threads: it forks. Not multiprocessing's: its children may have no
    children of their own."""

    def __init__(self, serve: Callable[[Connection, int], NoReturn]) -> None:
        """serve: what the fork does, given its end of the pipe and the process it must end with."""
        self._client, theirs = Pipe()
        parent, self._pid = os.getpid(), os.fork()
        if self._pid == 0:
            try:
                self._client.close()
                serve(theirs, parent)
            finally:
                os._exit(1)
        theirs.close()

    def close(self) -> None:
        """End the process, and with it all that it started."""
        self._client.close()
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
