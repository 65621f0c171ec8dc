"""Collecting on the machines of a Ray cluster: one entry at a time on each, the log with the one who asked.

A machine that is lost costs what it was measuring: that entry goes to another one, with all that had arrived.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any

from gnnperf import __version__
from gnnperf.corpus.config import NestConfig, NestEntry
from gnnperf.corpus.entry_process import THREADS, EntryJob, run_entry
from gnnperf.corpus.nests import SAID, NestCollector
from gnnperf.devices import describe_host
from gnnperf.errors import InputError, MeasureError

LEFT_AT_HOME = ("*.jsonl", "*.zst", "*.parquet", ".git", "runs")
"""Not sent along with the folder of a configuration: corpora that may be in it."""
TRIES = 2
"""Machines that may be lost over one entry before it is given up."""
LOST = -9
"""Exit code of an entry whose machines were lost."""
Kind = tuple[str, str]
"""Fingerprint and name of a machine's processor."""


class _Worker:
    """On each machine."""

    def describe(self) -> dict[str, str]:
        host = describe_host()
        return {
            "fingerprint": host.fingerprint, "name": host.name, "host": socket.gethostname(),
            "version": __version__,
        }  # fmt: skip

    def run(self, job: EntryJob) -> Iterator[Any]:
        with suppress(PermissionError):  # Ray makes its workers as nice as can be; what is timed must not be
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        config = replace(job.config, folder=Path.cwd())  # where Ray has put its files
        yield from run_entry(replace(job, config=config, parent=os.getpid()))


@dataclass
class Machine:
    """A machine of the cluster. doing: the entry it is busy with, and the stream of what it finds."""

    actor: Any
    host: str
    kind: Kind
    doing: tuple[NestEntry, Any] | None = None


@dataclass
class RayCluster:
    """All machines of a Ray cluster, as a context. `warn(text)` says which were lost.

    address: of a running cluster ("auto", "HOST:PORT"), from one of its machines; "local" starts one here.
    Raises InputError where Ray is not installed, nothing answers there, or a machine has another gnnperf.
    """

    address: str
    config: NestConfig
    warn: Callable[[str], None] = lambda _: None
    machines: list[Machine] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.address.startswith("ray://"):
            raise InputError(
                f"--ray: expected auto, local or HOST:PORT, got {self.address}; run it on one of the machines"
            )
        for entry in self.config.entries:
            for spec in filter(None, (entry.kernel, entry.inputs)):
                path = PurePath(spec.rpartition(":")[0])
                if entry.random is None and (path.is_absolute() or ".." in path.parts):
                    raise InputError(
                        f"--ray: expected kernels in the configuration's folder or below, got {spec}: other "
                        "machines get that folder; move the file"
                    )

    def __enter__(self) -> RayCluster:
        ray = _ray()
        local = {"include_dashboard": False} if self.address == "local" else {}
        try:
            ray.init(
                address=self.address, log_to_driver=False, logging_level="ERROR", configure_logging=False,
                runtime_env={"working_dir": str(self.config.folder), "excludes": list(LEFT_AT_HOME)}, **local,
            )  # fmt: skip
        except (OSError, ValueError, RuntimeError) as error:
            first = str(error).strip().partition("\n")[0]
            raise InputError(f"--ray: no cluster at {self.address}: {first}") from None
        try:
            self.machines = [self._join(node) for node in ray.nodes() if node["Alive"]]
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray = _ray()
        for machine in self.machines:
            with suppress(Exception):
                ray.kill(machine.actor)
        ray.shutdown()

    def _join(self, node: dict[str, Any]) -> Machine:
        ray = _ray()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        actor = ray.remote(num_cpus=0, max_restarts=0)(_Worker).options(scheduling_strategy=here).remote()
        about = ray.get(actor.describe.remote())
        if about["version"] != __version__:
            raise InputError(
                f"{about['host']}: expected gnnperf {__version__}, got {about['version']}; install the same"
            )
        return Machine(actor, about["host"], (about["fingerprint"], about["name"]))

    def spread(
        self,
        collector: NestCollector,
        entries: Sequence[NestEntry],
        work: str,
        receive: Callable[[Any], None],
    ) -> Generator[tuple[NestEntry, int], None, None]:
        """Do `work` on every entry, one at a time on each machine; as `workers.each`, yields (entry, exit
        code) whenever one has ended. A nest stays on machines of the kind that measured it first."""
        ray = _ray()
        waiting, lost = list(entries), Counter[str]()
        while waiting or any(machine.doing for machine in self.machines):
            self._start(collector, waiting, work)
            streams = {m.doing[1]: m for m in self.machines if m.doing}
            if not streams:
                yield from self._unwanted(collector, waiting)
                return
            for stream in ray.wait(list(streams), num_returns=1)[0]:
                machine = streams[stream]
                assert machine.doing is not None
                entry, _ = machine.doing
                try:
                    what, content = ray.get(next(stream))
                except (ray.exceptions.RayError, StopIteration):
                    self.machines.remove(machine)
                    lost[entry.key] += 1
                    self.warn(f"{entry}: the machine {machine.host} was lost")
                    if lost[entry.key] < TRIES:
                        waiting.insert(0, entry)
                    else:
                        yield entry, LOST
                    continue
                if what == "ended":
                    machine.doing = None
                    yield entry, content
                else:
                    receive((what, content))

    def _start(self, collector: NestCollector, waiting: list[NestEntry], work: str) -> None:
        """Give every idle machine the first of the waiting entries that may run there."""
        ray = _ray()
        for machine in self.machines:
            if machine.doing is not None:
                continue
            entry = next((e for e in waiting if _kinds(collector, e) <= {machine.kind}), None)
            if entry is None:
                continue
            waiting.remove(entry)
            job = EntryJob(
                collector.config, entry, work, collector.log.known, list(collector.portfolio),
                threads=os.environ.get(THREADS), asked=collector.asked,
            )  # fmt: skip
            stream = machine.actor.run.options(num_returns="streaming").remote(ray.put(job))
            machine.doing = entry, stream

    def _unwanted(
        self, collector: NestCollector, waiting: Sequence[NestEntry]
    ) -> Generator[tuple[NestEntry, int], None, None]:
        if not self.machines:
            raise MeasureError("all machines of the cluster were lost; run the same command to go on")
        for entry in waiting:
            names = ", ".join(sorted(name for _, name in _kinds(collector, entry)))
            self.warn(f"{entry}: it was measured on {names}, and no machine of the cluster is one")
            yield entry, SAID


def _kinds(collector: NestCollector, entry: NestEntry) -> set[Kind]:
    """Kinds of machines that measured nests of an entry before."""
    return {
        (line["device"]["fingerprint"], line["device"]["name"])
        for line in collector.log.tasks.values()
        if line["name"] == entry.name and line["parameters"] == dict(entry.symbols)
    }


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers
    os.environ.setdefault("RAY_worker_niceness", "0")  # of a cluster started here: what is timed is not nice
    try:
        import ray
    except ImportError:
        raise InputError("--ray needs Ray, an optional extra: pip install 'gnnperf[ray]'") from None
    return ray
