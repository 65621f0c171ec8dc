"""Which machine does what, when one is lost, and what is refused; the cluster is made up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from corpus.tiny import write_config

from gnnperf.corpus.asked import asked_for
from gnnperf.corpus.config import NestConfig, NestEntry, load_config
from gnnperf.corpus.entry_process import EntryJob, run_entry
from gnnperf.corpus.nests import SAID
from gnnperf.corpus.on_ray import LOST, Kind, Machine, RayCluster
from gnnperf.devices import describe_host
from gnnperf.devices.host import _describe, probe_file
from gnnperf.errors import InputError, MeasureError
from gnnperf.frontends.dace import load_kernel
from gnnperf.schedules.recipes import Recipe

ASKED = asked_for({"nest": [Recipe()]})
AMD, INTEL = ("cpu/x86_64/avx512", "AMD"), ("cpu/x86_64/avx512", "Intel")


class Lost(Exception):
    pass


class Stream:
    """What a worker yields; an exception in it is raised."""

    def __init__(self, messages: Iterator[Any]) -> None:
        self.messages = messages

    def __next__(self) -> Any:
        return next(self.messages)


class Actor:
    """Runs jobs: sends one line for each, or is lost while it does."""

    def __init__(self, name: str, lost_after: int | None = None) -> None:
        self.name, self.lost_after, self.jobs = name, lost_after, list[EntryJob]()
        self.run = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.start))

    def start(self, job: EntryJob) -> Stream:
        self.jobs.append(job)

        def messages() -> Iterator[Any]:
            yield "records", (self.name, job.entry.kernel)
            if self.lost_after is not None and len(self.jobs) > self.lost_after:
                yield Lost()
            yield "ended", 0

        return Stream(messages())


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(value: Any) -> Any:
        if isinstance(value, Lost):
            raise value
        return value

    made_up = SimpleNamespace(
        wait=lambda streams, num_returns: (streams[:1], streams[1:]), get=get, put=lambda job: job,
        exceptions=SimpleNamespace(RayError=Lost),
    )  # fmt: skip
    monkeypatch.setattr("gnnperf.corpus.on_ray._ray", lambda: made_up)


def config(folder: Path, *entries: NestEntry) -> NestConfig:
    return NestConfig("tiny", folder, entries)


def entry(name: str) -> NestEntry:
    return NestEntry(f"kernels.py:{name}", "family", {"N": 3})


def collector(**nests: Kind) -> Any:
    """nests: kernels measured before, and on what."""
    lines = {
        name: {"name": name, "parameters": {"N": 3}, "device": {"fingerprint": kind[0], "name": kind[1]}}
        for name, kind in nests.items()
    }
    log = SimpleNamespace(tasks=lines, known=(lines, {}, {}))
    return SimpleNamespace(config=None, log=log, portfolio=(), asked=ASKED)


def cluster(folder: Path, *machines: Machine) -> tuple[RayCluster, list[str]]:
    said: list[str] = []
    return RayCluster("auto", config(folder), said.append, list(machines)), said


def spread(made: RayCluster, known: Any, *names: str) -> tuple[dict[str, int], list[Any]]:
    received: list[Any] = []
    ended = made.spread(known, [entry(name) for name in names], "search", received.append)
    return {e.name: code for e, code in ended}, received


def test_every_machine_does_one_entry_at_a_time(ray: None, tmp_path: Path) -> None:
    a, b = Actor("a"), Actor("b")
    made, said = cluster(tmp_path, Machine(a, "a", AMD), Machine(b, "b", AMD))
    ended, received = spread(made, collector(), "one", "two", "three")
    assert ended == {"one": 0, "two": 0, "three": 0}
    assert len(received) == 3
    assert len(a.jobs) + len(b.jobs) == 3 and a.jobs and b.jobs
    assert all(job.asked == ASKED for job in a.jobs + b.jobs)
    assert said == []


def test_a_nest_stays_on_machines_of_its_kind(ray: None, tmp_path: Path) -> None:
    a, b = Actor("a"), Actor("b")
    made, said = cluster(tmp_path, Machine(a, "a", AMD), Machine(b, "b", INTEL))
    known = collector(one=INTEL, two=INTEL, three=("cpu/aarch64/sve", "another"))
    ended, _ = spread(made, known, "one", "two", "three")
    assert ended == {"one": 0, "two": 0, "three": SAID}
    assert [job.entry.name for job in b.jobs] == ["one", "two"] and a.jobs == []
    assert said == ["kernels.py:three N=3: it was measured on another, and no machine of the cluster is one"]


def test_what_a_lost_machine_did_goes_to_another(ray: None, tmp_path: Path) -> None:
    a, b = Actor("a", lost_after=0), Actor("b")
    made, said = cluster(tmp_path, Machine(a, "a", AMD), Machine(b, "b", AMD))
    ended, received = spread(made, collector(), "one", "two")
    assert ended == {"one": 0, "two": 0}
    assert ("records", ("a", "kernels.py:one")) in received, "what had arrived is kept"
    assert said == ["kernels.py:one N=3: the machine a was lost"]
    assert len(b.jobs) == 2


def test_an_entry_that_takes_machines_along_is_given_up(ray: None, tmp_path: Path) -> None:
    machines = [Machine(Actor(name, lost_after=0), name, AMD) for name in "abc"]
    made, said = cluster(tmp_path, *machines)
    ended, _ = spread(made, collector(), "one")
    assert ended == {"one": LOST}
    assert len(said) == 2 and len(made.machines) == 1


def test_all_machines_are_lost(ray: None, tmp_path: Path) -> None:
    made, _ = cluster(tmp_path, Machine(Actor("a", lost_after=0), "a", AMD))
    with pytest.raises(MeasureError, match="all machines of the cluster were lost; run the same command"):
        spread(made, collector(), "one")


@pytest.mark.parametrize(
    ("address", "kernel", "said"),
    [
        ("ray://head:10001", "kernels.py:one", "expected auto, local or HOST:PORT, got ray://head:10001"),
        (
            "auto",
            "../kernels.py:one",
            "kernels in the configuration's folder or below, got ../kernels.py:one",
        ),
        ("auto", "/kernels.py:one", "kernels in the configuration's folder or below, got /kernels.py:one"),
    ],
)
def test_what_is_refused(address: str, kernel: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--ray: ") as error:
        RayCluster(address, config(tmp_path, NestEntry(kernel, "family", {})))
    assert said in str(error.value)


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(InputError, match=r"pip install 'gnnperf\[ray\]'"),
        RayCluster("auto", config(tmp_path)),
    ):
        pass


def test_a_process_that_dies_says_so(tmp_path: Path) -> None:
    # Its parent is said to be another process than the one that started it: it takes that one for dead.
    made = config(tmp_path, entry("one"))
    assert list(run_entry(EntryJob(made, made.entries[0], "search", ({}, {}, {}), (), parent=1))) == [
        ("ended", 1)
    ]


def test_an_entry_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path / "cache"))
    probed = {**describe_host().to_dict(), "bandwidth_gbps": 10.0, "source": "made up"}
    probe_file(_describe()).write_text(json.dumps(probed))  # else its process measures the machine first
    (tmp_path / "kernels.py").write_text("def one():\n    pass\n")
    made = config(tmp_path, entry("one"))
    (what, why), (_, code) = run_entry(
        EntryJob(made, made.entries[0], "search", ({}, {}, {}), (), os.getpid())
    )
    assert what == "warning" and why.startswith("kernels.py:one N=3: InputError")
    assert code == SAID


@pytest.mark.parametrize("work", ["asked", "long search"])
def test_what_another_corpus_measured_comes_with_the_job(work: str, tmp_path: Path) -> None:
    """The machine has no such corpus."""
    config = load_config(write_config(tmp_path, recipes=1, foreign=0))
    assert isinstance(config, NestConfig)
    digest = load_kernel(config.path("kernels.py:doubled"), {"N": 300}).units[0].graph.digest
    recipe = Recipe(parallel="none")
    asked = asked_for({digest: [recipe]}, "foreign")
    job = EntryJob(config, config.entries[0], work, ({}, {}, {}), (), os.getpid(), asked=asked)
    *messages, ended = run_entry(job)
    assert ended == ("ended", 0), messages
    records = [line for name, lines in messages if name == "records" for line in lines]
    assert recipe.id in {line["schedule_id"] for line in records}
    assert {line["task"] for line in records} == {digest}
