"""Implementations of `axpy` that behave, and some that do not."""

from __future__ import annotations

import os
import signal
import time


def axpy(a, x, y):
    y += a * x


def returns(a, x, y):
    return {"y": y + a * x}


def off_by_a_little(a, x, y):
    y += a * x
    y[7] += 1e-3


def does_nothing(a, x, y):
    pass


def changes_its_input(a, x, y):
    y += a * x
    x[0] = 0.0


def raises(a, x, y):
    raise ValueError("no such luck\nand more")


def crashes(a, x, y):
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(a, x, y):
    time.sleep(3600)


calls = 0


def crashes_later(a, x, y):
    global calls
    calls += 1
    if calls > 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    y += a * x


def smooth(x, STEPS):
    for _ in range(STEPS):
        x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])
