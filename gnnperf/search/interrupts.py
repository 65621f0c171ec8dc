"""Ctrl-C while TVM is at work: its C++ code makes an error of its own of a callback that is interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt that comes inside is raised at the end. In other threads than the first it does nothing:
    they are not interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
