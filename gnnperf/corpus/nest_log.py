"""The log that `gnnperf collect` writes: `nests.jsonl`, `measurements.jsonl` and `done.jsonl` in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gnnperf.corpus.append_log import AppendLog

Known: TypeAlias = tuple[
    dict[str, dict[str, Any]], dict[str, dict[str, dict[str, Any]]], dict[str, dict[str, Any]]
]
"""`nests`, `measurements` and `done` of a log."""


class CorpusLog(AppendLog):
    """Append to a corpus folder, knowing what is already in it. Every method raises CorpusError.

    Attributes:
        nests: digest -> nest line. measurements: digest -> schedule id -> measurement line.
        done: key of finished work -> its line.
    """

    FILES = ("nests", "measurements", "done")
    """`done` says what needs no further work, and how it ended."""

    def __init__(self, folder: Path) -> None:
        self.nests: dict[str, dict[str, Any]] = {}
        self.measurements: dict[str, dict[str, dict[str, Any]]] = {}
        self.done: dict[str, dict[str, Any]] = {}
        super().__init__(folder)

    def _know(self, name: str, line: dict[str, Any]) -> None:
        if name == "nests":
            self.nests[line["digest"]] = line
        elif name == "measurements":
            self.measurements.setdefault(line["digest"], {})[line["schedule_id"]] = line
        else:
            self.done[line["key"]] = line

    def add(self, name: str, line: Mapping[str, Any]) -> None:
        """Add a line to one of FILES; a nest that is known already is not added again."""
        if name != "nests" or line["digest"] not in self.nests:
            self._know(name, dict(line))
            self._append(name, line)

    def mark_done(self, key: str, **details: Any) -> None:
        """Say that work is finished, and how it ended."""
        self.add("done", {"key": key, **details})

    @property
    def known(self) -> Known:
        """A copy of what is in it."""
        measurements = {digest: dict(of_nest) for digest, of_nest in self.measurements.items()}
        return dict(self.nests), measurements, dict(self.done)

    @classmethod
    def elsewhere(cls, known: Known, send: Callable[[tuple[str, Mapping[str, Any]]], None]) -> CorpusLog:
        """For a process that does not hold the files: what is added to it is sent, as the arguments of `add`,
        to the one that does. known: of the log there."""
        log = cls.__new__(cls)
        log.nests, log.measurements, log.done = known
        log._files = {}

        def relay(name: str, *lines: Mapping[str, Any]) -> None:
            for line in lines:
                send((name, line))

        log._append = relay  # type: ignore[method-assign]
        return log
