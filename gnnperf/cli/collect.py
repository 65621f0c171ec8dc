"""`gnnperf collect`: measure a corpus of (nest, schedule) pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnnperf.cli.output import Report, Verb, progress

if TYPE_CHECKING:
    from gnnperf.corpus.collect_nests import Spread
    from gnnperf.corpus.nest_config import CollectConfig


@click.command(cls=Verb)
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Folder of the corpus; what it already holds is not measured again.  [default: runs/corpora/NAME]",
)  # fmt: skip
@click.option("--seal", is_flag=True, help="Compress the log when everything is measured.")
@click.option("--only", metavar="FAMILY", multiple=True, help="Only entries of this family; may be repeated.")
@click.option(
    "--ray", "address", metavar="ADDRESS",
    help="Measure on all machines of the Ray cluster at ADDRESS (auto, HOST:PORT, or local for one that is "
    "started here), one entry at a time on each; the log stays here. Needs pip install 'gnnperf[ray]'.",
)  # fmt: skip
def collect(
    config: Path, output: Path | None, seal: bool, only: tuple[str, ...], address: str | None
) -> Report:
    """Measure the nests of a corpus configuration under schedules found by search.

    CONFIG lists kernels, sizes and search settings (see configs/corpus/). The log is append-only: interrupt
    it at any time and start it again, it goes on where it stopped.
    """
    from dataclasses import replace

    from gnnperf.corpus.collect_nests import Collector
    from gnnperf.corpus.nest_config import CollectConfig
    from gnnperf.corpus.nest_log import CorpusLog
    from gnnperf.errors import InputError, Interrupted
    from gnnperf.measure import Compiler, Runner

    settings = CollectConfig.load(config)
    if only:
        families = {entry.family for entry in settings.entries}
        if unknown := sorted(set(only) - families):
            raise InputError(f"{config} has no family {unknown[0]!r}; it has {', '.join(sorted(families))}")
        settings = replace(settings, entries=tuple(e for e in settings.entries if e.family in only))
    folder = output or Path("runs") / "corpora" / settings.name
    log = CorpusLog(folder)
    skipped: list[str] = []

    def warn(text: str) -> None:
        skipped.append(text)
        click.echo(f"left out: {text}", err=True)

    try:
        with _cluster(address, settings, warn) as spread, Compiler() as compiler, Runner() as runner:
            collector = Collector(settings, log, compiler, runner, warn=warn, spread=spread)
            with progress("collecting", collector.steps) as advance:
                collector.advance = advance
                collector.run()
        if seal:
            log.seal()
    except KeyboardInterrupt:
        kept = sum(map(len, log.measurements.values()))
        raise Interrupted(
            f"interrupted; {kept} measurements are kept in {folder}; run the same command to go on"
        ) from None
    finally:
        log.close()
    return _report(folder, log, skipped)


@contextmanager
def _cluster(
    address: str | None, settings: CollectConfig, warn: Callable[[str], None]
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


def _report(folder: Path, log: object, skipped: list[str]) -> Report:
    from rich.table import Table

    from gnnperf.corpus.nest_log import CorpusLog

    assert isinstance(log, CorpusLog)
    families = Counter(nest["family"] for nest in log.nests.values())
    statuses = Counter(m["status"] for of_nest in log.measurements.values() for m in of_nest.values())
    document = {
        "corpus": folder,
        "nests": len(log.nests),
        "measurements": sum(statuses.values()),
        "families": dict(families),
        "statuses": dict(statuses),
        "left_out": skipped,
    }
    table = Table("family", "nests", box=None, title=f"{folder}: {sum(statuses.values())} measurements")
    for family, count in sorted(families.items()):
        table.add_row(family, str(count))
    return Report(document, table)
