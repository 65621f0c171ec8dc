"""A process of `worker.py`, seen from the one that started it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import gnnperf


class WorkerProcess:
    """A worker with its job; ended when the context ends. hung: ended because it took too long."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        root = str(Path(gnnperf.__file__).parents[1])
        inherited = os.environ.get("PYTHONPATH")
        self.hung = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gnnperf.measure.remote.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, inherited)))},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._out = self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job).encode())
            self._process.stdin.close()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._out.close()
        self._errors.close()

    def messages(self, first_s: float, next_s: float) -> Iterator[dict[str, Any]]:
        """What it reports until it ends, or until it says nothing for too long."""
        pending, limit_s = b"", first_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while selector.select(limit_s):
                piece = os.read(self._out.fileno(), 1 << 16)
                if not piece:
                    self._process.wait()
                    return
                *lines, pending = (pending + piece).split(b"\n")
                for line in lines:
                    yield json.loads(line)
                    limit_s = next_s
        self.hung = True

    def failure(self) -> dict[str, Any]:
        """Outcome of the schedule that it was running when it died."""
        code = self._process.returncode
        cause = (
            f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended early with exit code {code}"
        )
        return {"status": "run_error", "detail": cause}

    def complaint(self) -> str:
        """Why it did not begin: the last that it said."""
        if self.hung:
            return "the reference took too long"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return said[-1][:300] if said else f"the process ended with exit code {self._process.returncode}"
