"""The log of collected TVM schedules: `workloads`, `schedules` and `done`, as .jsonl, in a folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnnperf.corpus.append_log import AppendLog


class TensorLog(AppendLog):
    """Append to a corpus folder, knowing what is in it. Every method raises CorpusError.

    Attributes:
        workloads: name -> line. schedules: name of the workload -> lines, in the order of measuring.
        exhausted: names of workloads in which the search finds nothing new.
    """

    FILES = ("workloads", "schedules", "done")
    """`workloads`: what was measured, and its baseline. `schedules`: one measured schedule a line. `done`:
    workloads with no further schedules, and what each pass took."""

    def __init__(self, folder: Path) -> None:
        self.workloads: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.exhausted: set[str] = set()
        super().__init__(folder)

    def _know(self, name: str, line: dict[str, Any]) -> None:
        if name == "workloads":
            self.workloads[line["workload"]] = line
        elif name == "schedules":
            self.schedules[line["workload"]].append(line)
        elif line.get("exhausted"):
            self.exhausted.add(line["workload"])

    def add(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add lines to one of FILES, at once."""
        for line in lines:
            self._know(name, dict(line))
        self._append(name, *lines)
