"""Kinds of faults that are injected, and what is checked of each."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """module, function: what makes the injector (`injecting.Prepare`), imported in the process that uses it.
    share: of the faults, in parts. checked: in words, for the table."""

    module: str
    function: str
    share: int
    checked: str


ONE_LINE = "one clear line"

KINDS = {
    "exports": Kind(
        "hostile_stores", "exports", 150,
        "lines of an export: what is wrong is refused, the right ones beside it are imported",
    ),
    "schedules": Kind(
        "hostile_stores", "schedules", 150, "recipes and traces: nothing passes but what gnnperf may make"
    ),
    "graphs": Kind("hostile_files", "graphs", 150, f"{ONE_LINE}, or a graph that is encoded and named"),
    "devices": Kind("hostile_files", "devices", 70, f"YAML: {ONE_LINE}, or a device of finite numbers"),
    "kernels": Kind(
        "hostile_files", "kernels", 70, f"YAML: {ONE_LINE}, or a description whose expressions have values"
    ),
    "tables": Kind("hostile_files", "tables", 40, f"CSV and Parquet: {ONE_LINE}, or positive runtimes"),
    "stores": Kind(
        "damaged", "stores", 80, f"{ONE_LINE}, or records and graphs that pass `store check` are as written"
    ),
    "archives": Kind("damaged", "archives", 40, f"exports: {ONE_LINE}, what came before is as written"),
    "checkpoints": Kind("damaged", "checkpoints", 50, f"{ONE_LINE}, or the same weights and calibration"),
    "artefacts": Kind("damaged", "artefacts", 30, f"TorchScript: {ONE_LINE}, or the same bytes"),
    "flat-stores": Kind("damaged", "flat_stores", 40, f"exported stores: {ONE_LINE}, or the same answers"),
    "caches": Kind("damaged", "caches", 40, "made again, with the same answers"),
    "corpora": Kind("damaged", "corpora", 40, f"{ONE_LINE}, or of sealed files the lines that were written"),
    "crashes": Kind(
        "writers", "crashes", 60,
        "files as a power cut leaves them: what was acknowledged is there, and writing goes on",
    ),
    "killed": Kind(
        "writers", "killed", 30, "`kill -9` of a writer of a corpus: every acknowledged line is there"
    ),
    "full-disks": Kind("writers", "full_disks", 60, f"{ONE_LINE}, what was there is there, no partial file"),
    "interrupts": Kind(
        "writers", "interrupts", 40, "Ctrl-C in a command: exit code 0 or 130, what was there is there"
    ),
    "two-at-once": Kind("writers", "two_at_once", 20, "both have done what they say, or one says it cannot"),
    "candidates": Kind("candidates", "candidates", 40, "the status is right, the next candidate is measured"),
    "commands": Kind("commands", "commands", 4, "whole processes that are killed or interrupted"),
}  # fmt: skip
