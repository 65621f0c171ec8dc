"""Running a tool with a time and a memory limit, leaving nothing behind."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from gnnperf.errors import MeasureError
from gnnperf.measure.isolation import confined
from gnnperf.measure.supervisor import kill_group


@dataclass(frozen=True, slots=True)
class Finished:
    """`returncode` is None when the time limit ended the tool."""

    returncode: int | None
    stderr: str


class Tools:
    """Runs tools from any thread, each in a process group of its own; `stop()` kills those running."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], cwd: str, timeout_s: float, memory_bytes: int) -> Finished:
        """Run to the end or to the limit; whatever the tool started is killed with it. It writes only below
        `cwd`, where its temporary files go with the rest of what an interrupted tool leaves behind, and
        reaches no network, where the system allows that (`isolation.confine`).

        The memory limit is set by a shell that then becomes the tool: setting it after the start
        would race with the tool's own children, and a preexec function is unsafe with threads.
        Raises MeasureError when `stop()` was called meanwhile.
        """
        limited = ["/bin/sh", "-c", f'ulimit -v {memory_bytes // 1024}; exec "$@"', "sh", *command]
        with self._guard:
            if self._stopped:
                raise MeasureError("stopped")
            process = confined(
                lambda: subprocess.Popen(
                    limited,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    start_new_session=True,
                    env={**os.environ, "LC_ALL": "C", "TMPDIR": cwd, "CCACHE_DISABLE": "1"},
                ),
                cwd,
            )
            self._running.add(process)
        try:
            _, stderr = process.communicate(timeout=timeout_s)
            if self._stopped:
                raise MeasureError("stopped")
            return Finished(process.returncode, stderr)
        except subprocess.TimeoutExpired:
            return Finished(None, "")
        finally:
            with self._guard:
                self._running.discard(process)
            kill_group(process.pid)
            process.wait()
            if process.stderr is not None:
                process.stderr.close()

    def stop(self) -> None:
        """Kill every running tool, and start no other until `resume`."""
        with self._guard:
            self._stopped = True
            for process in self._running:
                kill_group(process.pid)

    def resume(self) -> None:
        with self._guard:
            self._stopped = False
