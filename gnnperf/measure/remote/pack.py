"""What a pack holds: a folder with built schedules, and what is needed to run them elsewhere.

pack.json        what the schedules were built for, and with which versions
tasks.jsonl      a line per workload: `arguments`, `seed` of its inputs, `reference` and `baseline_library`
records.jsonl    a line per schedule: its trace, and the `library` and `function` that it became
WORKLOAD/*.so    schedules, baseline and reference; host code for x86-64
cubins/          machine code for the GPU, by the SHA-1 of the CUDA source in a library
runtime/         TVM's runtime
program/         this program, to be run where nothing else of gnnperf is, and measure.py, which starts it
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError
from gnnperf.measure.record_log import read_lines

FORMAT = 2
HEADER = "pack.json"
BUILT_KEYS = ("library", "function")
"""Of a schedule's line: where it is in the pack. A log has its outcome in their place."""
HOW_KEYS = ("arguments", "reduction_length", "seed", "reference", "baseline_library")
"""Of a workload's line: how it is run. A log has its baseline's times in their place."""


@dataclass(frozen=True)
class PackedWorkload:
    """about: its line. schedules: `schedule_id` -> line."""

    about: Mapping[str, Any]
    schedules: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        return str(self.about["task"])


@dataclass(frozen=True)
class Pack:
    """folder: where it lies. header: of pack.json. workloads: in the order in which they were packed."""

    folder: Path
    header: Mapping[str, Any]
    workloads: tuple[PackedWorkload, ...]

    @property
    def arch(self) -> str:
        """What the schedules were built for: "sm_90a"."""
        return str(self.header["arch"])

    @staticmethod
    def read(folder: Path) -> Pack:
        """Raises InputError: not a pack, damaged, or of another version."""
        header = read_header(folder)
        try:
            schedules: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
            for _, line in read_lines(folder, "records"):
                schedules[line["task"]][line["schedule_id"]] = line
            lines = [line for _, line in read_lines(folder, "tasks")]
            workloads = tuple(PackedWorkload(line, schedules[line["task"]]) for line in lines)
        except KeyError as error:
            raise InputError(f"{folder}: a line without {error}; pack it again") from None
        if not workloads:
            raise InputError(f"{folder}: expected a pack with workloads, got none; let packing finish one")
        return Pack(folder, header, workloads)


def read_header(folder: Path) -> dict[str, Any]:
    """What pack.json says. Raises InputError."""
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(
            f"expected a pack with {HEADER}, got {folder}; give the folder that `gnnperf measure pack` wrote"
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        got = header.get("format") if isinstance(header, dict) else type(header).__name__
        raise InputError(f"{folder / HEADER}: expected format {FORMAT}, got {got}; pack it again")
    return header
