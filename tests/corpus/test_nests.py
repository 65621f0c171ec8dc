"""Collection on two tiny kernels: interrupted, resumed, with entries that fail."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from corpus.tiny import write_config

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.corpus import nests
from gnnperf.corpus.config import NestConfig, NestEntry, load_config
from gnnperf.errors import CorpusError, MeasureError
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.record_log import RecordLog
from gnnperf.nests import nest_graph
from gnnperf.schedules.recipes import DEFAULTS
from gnnperf.training import load_corpus

RECIPES = 3
"""Fewer than searches begin with: the rest comes with the second pass."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, RECIPES, foreign=2)


class Collection:
    """One run after another into one folder. `measured`: (digest, schedule id) in all of them."""

    def __init__(self, config: Path, compiler: Compiler, runner: Runner) -> None:
        self.config, self.compiler, self.runner = config, compiler, runner
        self.measured: list[tuple[str, str]] = []
        self.warnings: list[str] = []

    def run(self, interrupt_after: int | None = None) -> RecordLog:
        """Interrupted, if asked for, as soon as that many schedules were measured in this run."""
        log = RecordLog(self.config.parent / "corpus")
        append, left = log._append, interrupt_after

        def count(name: str, lines: Sequence[Mapping[str, Any]]) -> None:
            nonlocal left
            append(name, lines)
            if name != "records":
                return
            (line,) = lines
            self.measured.append((line["task"], line["schedule_id"]))
            if left is not None:
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt

        log._append = count  # type: ignore[method-assign]
        settings = load_config(self.config)
        assert isinstance(settings, NestConfig)
        try:
            nests.NestCollector(settings, log, self.compiler, self.runner, warn=self.warnings.append).run()
        finally:
            log.close()
        return log


@pytest.fixture
def collection(config: Path, compiler: Compiler, runner: Runner) -> Collection:
    return Collection(config, compiler, runner)


def test_interrupted_anywhere_nothing_is_measured_twice(collection: Collection) -> None:
    for after in (RECIPES - 1, RECIPES, RECIPES):  # in the first search, in the second, in the second pass
        with pytest.raises(KeyboardInterrupt):
            collection.run(interrupt_after=after)
    log = collection.run()
    assert len(collection.measured) == len(set(collection.measured)) > 2 * RECIPES
    assert {nest["family"] for nest in log.tasks.values()} == {"elementwise", "reduction"}
    assert all(len(of_one) >= len(DEFAULTS) for of_one in log.records.values())
    assert not collection.warnings
    done = list(collection.measured)
    collection.run()
    assert collection.measured == done, "all was done"
    corpus = load_corpus(collection.config.parent / "corpus")
    assert (len(corpus.nests), corpus.measurement_count) == (2, len(done))
    for nest in corpus.nests:
        assert nest.nest is not None and nest_graph(nest.nest, nest.trip_counts).digest == nest.digest


@pytest.mark.slow
def test_a_larger_budget_goes_on_from_what_is_known(collection: Collection) -> None:
    log = collection.run()
    portfolio = {key: line for key, line in log.done.items() if key.startswith("portfolio ")}
    before = list(collection.measured)
    text = collection.config.read_text()
    collection.config.write_text(text.replace(f"per_nest: {RECIPES}", "per_nest: 24\npatience: 2"))
    log = collection.run()
    assert len(collection.measured) == len(set(collection.measured)) > len(before)
    assert collection.measured[: len(before)] == before
    searches = [line for key, line in log.done.items() if key.startswith("nest ")]
    assert [line["budget"]["trials"] for line in searches] == [24, 24]
    assert all(line["ended"] in ("converged", "trials") and line["search_s"] > 0 for line in searches)
    assert {key: line for key, line in log.done.items() if key.startswith("portfolio ")} == portfolio


@pytest.mark.slow
def test_an_entry_that_fails_is_left_out_and_tried_again(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(unit: Any, *_: Any) -> Any:
        if unit.name.startswith("doubled"):
            raise MeasureError("no space left on device")
        return UnitCase.prepare(unit, *_)

    class Failing:
        prepare = staticmethod(full_disk)

    with monkeypatch.context() as patch:
        patch.setattr(nests, "UnitCase", Failing)
        log = collection.run()
    assert [nest["name"] for nest in log.tasks.values()] == ["total"]
    assert (
        collection.warnings
        == ["kernels.py:doubled N=300: MeasureError: doubled_0: no space left on device"] * 3
    )
    log = collection.run()
    assert sorted(nest["name"] for nest in log.tasks.values()) == ["doubled", "total"]
    assert len(collection.measured) == len(set(collection.measured))


def test_a_kernel_that_cannot_be_read_is_left_out(collection: Collection) -> None:
    text = collection.config.read_text()
    collection.config.write_text(text.replace("kernels.py:doubled", "kernels.py:missing"))
    log = collection.run()
    assert [nest["name"] for nest in log.tasks.values()] == ["total"]
    assert all("kernels.py:missing N=300: InputError" in line for line in collection.warnings)


def test_what_fails_without_a_word_is_left_out_with_its_exit_code(
    config: Path, compiler: Compiler, runner: Runner
) -> None:
    """As a process does that cannot read its job. What says why it failed is not told twice."""
    settings, said = load_config(config), list[str]()
    assert isinstance(settings, NestConfig)

    def spread(
        _: object, entries: Sequence[NestEntry], *__: object
    ) -> Generator[tuple[NestEntry, int], None, None]:
        yield from zip(entries, (1, nests.SAID), strict=True)

    log = RecordLog(config.parent / "corpus")
    collector = nests.NestCollector(settings, log, compiler, runner, warn=said.append, spread=spread)
    collector._pass("search", settings.entries, lambda entry: entry.key)
    log.close()
    assert said == ["kernels.py:doubled N=300: its process ended with 1"]
    assert not log.done


def test_a_log_that_cannot_be_written_ends_the_collection(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: RecordLog, name: str, line: Any) -> None:
        raise CorpusError("no room")

    monkeypatch.setattr(RecordLog, "_append", full)
    with pytest.raises(CorpusError, match="no room"):
        collection.run()
