"""`gnnperf collect`: measure a corpus: nests, TVM workloads, or configurations of tunable GPU kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import FILE, FOLDER, output_folder
from gnnperf.cli.output import Report, Verb, going_on, progress

if TYPE_CHECKING:
    from gnnperf.corpus.asked import Asked
    from gnnperf.corpus.config import KernelConfig, NestConfig, WorkloadConfig
    from gnnperf.corpus.nests import Spread
    from gnnperf.measure.record_log import RecordLog


@click.command(cls=Verb)
@click.argument("config", type=FILE)
@output_folder(
    "Folder of the corpus; what it already holds is not measured again.  [default: runs/corpora/NAME]",
    required=False,
)
@click.option("--seal", is_flag=True, help="Compress the log when everything is measured.")
@click.option(
    "--only", metavar="NAME", multiple=True,
    help="Only entries of this family, this workload or kind of workload, this GPU kernel; may be repeated.",
)  # fmt: skip
@click.option(
    "--again", metavar="CORPUS", type=FOLDER,
    help="For nests: measure the schedules that CORPUS holds for them, and search for none.",
)  # fmt: skip
@click.option(
    "--ray", "address", metavar="ADDRESS",
    help="For nests: measure on all machines of the Ray cluster at ADDRESS (auto, HOST:PORT, or local for "
    "one that is started here), one entry at a time on each; the log stays here. Needs "
    "pip install 'gnnperf[ray]'.",
)  # fmt: skip
@click.option(
    "--schedules", metavar="N", type=click.IntRange(1),
    help="For TVM workloads: so many of each in all, instead of the configuration's last pass.",
)  # fmt: skip
@click.option(
    "--processes", metavar="N", type=click.IntRange(1),
    help="Nests or TVM workloads at a time, of which one is timed; the others compile.  [default: 2]",
)  # fmt: skip
def collect(
    config: Path,
    output: Path | None,
    seal: bool,
    only: tuple[str, ...],
    again: Path | None,
    address: str | None,
    schedules: int | None,
    processes: int | None,
) -> Report:
    """Measure what a corpus configuration lists, under schedules found by search.

    The `kind` of CONFIG says what that is: nests of DaCe kernels (where it says nothing), workloads of TVM,
    or configurations of tunable GPU kernels, which takes an NVIDIA GPU (see configs/corpus/). The log is
    append-only: interrupt it at any time and start it again, it goes on where it stopped.
    """
    from gnnperf.corpus.config import KernelConfig, NestConfig, PackConfig, WorkloadConfig, load_config
    from gnnperf.errors import InputError
    from gnnperf.measure.record_log import RecordLog

    settings = load_config(config)
    if isinstance(settings, PackConfig):
        raise InputError(
            f"{config} is for schedules that another machine measures; use: gnnperf measure pack {config}"
        )
    for option, value, kind, what in (
        ("--again", again, NestConfig, "nests"),
        ("--ray", address, NestConfig, "nests"),
        ("--schedules", schedules, WorkloadConfig, "TVM workloads"),
        ("--processes", processes, (NestConfig, WorkloadConfig), "nests and TVM workloads"),
    ):
        if value is not None and not isinstance(settings, kind):
            raise InputError(f"{option} is for {what}, and {config} lists something else; leave it out")
    if address is not None and processes is not None:
        raise InputError("--processes is for this machine alone; leave it or --ray out")

    if only:
        settings = settings.only(only)
    asked = None
    if again is not None:
        from gnnperf.corpus.asked import measured_before
        from gnnperf.corpus.reader import read_corpus

        assert isinstance(settings, NestConfig)
        settings, asked = measured_before(settings, read_corpus(again))
    folder = output or Path("runs") / "corpora" / settings.name
    if isinstance(settings, KernelConfig):
        from gnnperf.measure.gpu_operators import cuda_torch

        cuda_torch()  # without a GPU, it says so before a folder is made
    log = RecordLog(folder)
    work = _Work(log)
    with (
        closing(log),
        going_on(lambda: f"{sum(map(len, log.records.values()))} measurements are kept in {folder}"),
    ):
        if isinstance(settings, NestConfig):
            work.nests(settings, address, processes or 2, asked)
        elif isinstance(settings, WorkloadConfig):
            work.workloads(settings if schedules is None else settings.up_to(schedules), processes or 2)
        else:
            work.configurations(settings)
        if seal:
            log.seal()
    return log_report(log, left_out=work.left_out)


class _Work:
    """Collects into a log. left_out: what could not be measured, and why."""

    def __init__(self, log: RecordLog) -> None:
        self.log = log
        self.left_out: list[str] = []

    def warn(self, text: str) -> None:
        self.left_out.append(text)
        click.echo(f"left out: {text}", err=True)

    def nests(self, settings: NestConfig, address: str | None, processes: int, asked: Asked | None) -> None:
        from gnnperf.corpus.nests import NestCollector
        from gnnperf.measure import Compiler, Runner

        with _cluster(address, settings, self.warn) as spread, Compiler() as compiler, Runner() as runner:
            collector = NestCollector(
                settings, self.log, compiler, runner, warn=self.warn, spread=spread, processes=processes,
                asked=asked,
            )  # fmt: skip
            with progress("collecting", collector.steps) as collector.advance:
                collector.run()

    def workloads(self, settings: WorkloadConfig, processes: int) -> None:
        from gnnperf.corpus.traces import TraceCollector

        collector = TraceCollector(settings, self.log, processes=processes, warn=self.warn)
        with progress("collecting", collector.steps) as collector.advance:
            collector.run()

    def configurations(self, settings: KernelConfig) -> None:
        from gnnperf.corpus.gpu import KernelCollector

        collector = KernelCollector(settings, self.log)
        with progress("collecting", collector.steps) as collector.advance:
            collector.run()


@contextmanager
def _cluster(
    address: str | None, settings: NestConfig, warn: Callable[[str], None]
) -> Iterator[Spread | None]:
    """Where entries are measured; None: here."""
    if address is None:
        yield None
        return
    from gnnperf.corpus.on_ray import RayCluster

    with RayCluster(address, settings, warn) as cluster:
        hosts = Counter(machine.host for machine in cluster.machines)
        click.echo(f"gnnperf: measuring on {len(cluster.machines)} machines: {', '.join(hosts)}", err=True)
        yield cluster.spread


def log_report(log: RecordLog, **more: Any) -> Report:
    """What is in a log, in numbers. more: further keys of the document."""
    from rich.table import Table

    families = Counter(task["family"] for task in log.tasks.values())
    statuses = Counter(line["status"] for of_task in log.records.values() for line in of_task.values())
    measurements = sum(statuses.values())
    table = Table("family", "tasks", box=None, title=f"{log.folder}: {measurements} measurements")
    for family, count in sorted(families.items()):
        table.add_row(family, str(count))
    document = {
        "corpus": log.folder, "tasks": len(log.tasks), "measurements": measurements,
        "families": dict(families), "statuses": dict(statuses), **more,
    }  # fmt: skip
    return Report(document, table)
