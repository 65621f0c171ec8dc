"""Recipes that somebody asks for, on two tiny kernels; and logs of other machines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from corpus.tiny import write_config

from gnnperf.corpus.asked import asked_for
from gnnperf.corpus.config import NestConfig, load_config
from gnnperf.corpus.nests import NestCollector
from gnnperf.errors import InputError
from gnnperf.frontends.dace import load_kernel
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.record_log import RecordLog
from gnnperf.schedules.recipes import Recipe

PLAIN, VECTORS = Recipe(vector="none", parallel="none"), Recipe(parallel="none")


@pytest.fixture
def config(tmp_path: Path) -> NestConfig:
    found = load_config(write_config(tmp_path, 1, foreign=0))
    assert isinstance(found, NestConfig)
    return found


def ask(
    config: NestConfig,
    folder: Path,
    asked: Mapping[str, Sequence[Recipe]],
    compiler: Compiler,
    runner: Runner,
) -> RecordLog:
    log = RecordLog(folder)
    try:
        NestCollector(config, log, compiler, runner, asked=asked_for(asked)).run()
    finally:
        log.close()
    return log


def test_what_is_asked_is_measured_and_nothing_else(
    config: NestConfig, tmp_path: Path, compiler: Compiler, runner: Runner
) -> None:
    everything = ask(config, tmp_path / "a", {}, compiler, runner)
    assert not everything.tasks and not everything.records
    digest = load_kernel(config.path("kernels.py:doubled"), {"N": 300}).units[0].graph.digest

    first = ask(config, tmp_path / "c", {digest: [VECTORS]}, compiler, runner)
    assert {task: [*lines] for task, lines in first.records.items()} == {digest: [VECTORS.id]}
    assert first.records[digest][VECTORS.id]["origin"] == "asked"
    timed = first.records[digest][VECTORS.id]["runtime_s"]
    more = ask(config, tmp_path / "c", {digest: [PLAIN, VECTORS]}, compiler, runner)
    assert sorted(more.records[digest]) == sorted([PLAIN.id, VECTORS.id])
    assert more.records[digest][VECTORS.id]["runtime_s"] == timed, "what is known is not measured again"


def test_a_log_of_another_machine_is_refused(
    config: NestConfig, tmp_path: Path, compiler: Compiler, runner: Runner
) -> None:
    log = RecordLog(tmp_path / "log")
    log.add("tasks", {"task": "x", "device": {"fingerprint": "cpu/other/none", "name": "other"}})
    collector = NestCollector(config, log, compiler, runner)
    message = f"this machine, got {log.folder} with some of cpu/other/none"
    with pytest.raises(InputError, match=re.escape(message)):
        collector.run()
    log.close()
