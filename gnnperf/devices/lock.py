"""One timed job at a time on this machine: two at once would measure each other."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType

from gnnperf.devices.cache import gnnperf_cache_dir


class MachineLock:
    """An advisory lock in the cache folder, held while anything is being timed.

    It belongs to an open file, so the kernel gives it back when the holder dies, however it dies.
    Processes see one another only if they share the cache folder (one user, or one GNNPERF_CACHE).
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path or str(gnnperf_cache_dir() / "measure.lock")
        self._descriptor: int | None = None

    def file(self) -> str:
        """The path, where there is a file from then on: who is confined to it can take the lock."""
        os.close(self._open())
        return self.path

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; False if `blocking` is off and another process holds it."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except PermissionError:  # another user's: that it is only read does not keep it from being locked
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> MachineLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
