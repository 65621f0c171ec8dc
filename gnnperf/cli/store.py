"""`gnnperf store`: look after a schedule store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from rich.table import Table

    from gnnperf.store import StoreInfo

file_argument = click.argument("file", metavar="FILE.jsonl.zst", type=click.Path(path_type=Path))


@click.group()
def store() -> None:
    """Look after a schedule store: info, merge, prune, export, import.

    STORE is a folder, or a URI of object storage or of a LanceDB server (s3://..., gs://..., db://...).
    """


@store.command(cls=Verb)
@click.argument("location", metavar="STORE")
def info(location: str) -> Report:
    """Print what is in a store."""
    from gnnperf.store import Store

    found = Store.open(location).info()
    return Report(asdict(found), _info_table(found))


@store.command(cls=Verb)
@click.argument("location", metavar="STORE")
@click.argument("others", metavar="OTHER...", nargs=-1, required=True)
def merge(location: str, others: tuple[str, ...]) -> Report:
    """Add to STORE what the OTHER stores have and it has not. STORE is made if need be."""
    from gnnperf.store import Store

    sources = [Store.open(other) for other in others]  # before STORE is made: a name may be mistyped
    target = Store.open(location, create=True)
    changes = [target.merge(source) for source in sources]
    return _report(location, "added", sum(c.nests for c in changes), sum(c.records for c in changes))


@store.command(cls=Verb)
@click.argument("location", metavar="STORE")
@click.option(
    "--keep-best",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of each nest, device and baseline, keep the newest record of each of the N fastest schedules.",
)
@click.option(
    "--failures-older-than",
    "failure_days",
    metavar="DAYS",
    type=click.IntRange(0, 100_000),
    help="Remove older records of schedules that failed.",
)
@click.option(
    "--encoder",
    "encoder_id",
    metavar="ID",
    help="Remove the embeddings by other encoders of nests that this one has embedded.",
)
def prune(location: str, keep_best: int | None, failure_days: int | None, encoder_id: str | None) -> Report:
    """Remove what is not wanted any more, and compact the files.

    Without options only what was superseded is removed.
    """
    from gnnperf.store import Store

    age = None if failure_days is None else timedelta(days=failure_days)
    removed = Store.open(location).prune(keep_best, age, encoder_id)
    return _report(location, "removed", removed.nests, removed.records)


@store.command(cls=Verb)
@click.argument("location", metavar="STORE")
@file_argument
def export(location: str, file: Path) -> Report:
    """Write everything in STORE to one compressed file."""
    from gnnperf.store import Store

    written = Store.open(location).export(file)
    return _report(str(file), "wrote", written.nests, written.records)


@store.command("import", cls=Verb)
@click.argument("location", metavar="STORE")
@click.argument("file", metavar="[FILE.jsonl.zst]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--metaschedule", metavar="DIR", type=click.Path(path_type=Path),
    help="Instead of a file: a folder with database_workload.json and database_tuning_record.json of TVM's "
    "MetaSchedule. Records of other processors than this are kept, for them; those of GPUs are left out.",
)  # fmt: skip
@click.option(
    "--best", default=8, show_default=True, type=click.IntRange(1),
    help="With --metaschedule: traces added of each workload, the fastest.",
)  # fmt: skip
def import_(location: str, file: Path | None, metaschedule: Path | None, best: int) -> Report:
    """Add to STORE what an exported file has and it has not. STORE is made if need be."""
    from gnnperf.errors import InputError
    from gnnperf.store import Store

    if (file is None) == (metaschedule is None):
        got = "neither" if file is None else "both"
        raise InputError(f"expected FILE.jsonl.zst or --metaschedule DIR, got {got}; give one of them")
    if metaschedule is not None:
        return _import_metaschedule(location, metaschedule, best)
    if file is None or not file.is_file():  # before STORE is made
        raise InputError(f"expected a file made by `gnnperf store export`, got {file}, which is no file")
    added = Store.open(location, create=True).import_(file)
    return _report(location, "added", added.nests, added.records)


def _import_metaschedule(location: str, folder: Path, best: int) -> Report:
    from gnnperf.integrations.tvm import import_database
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.shipped import shipped_bundle
    from gnnperf.store import Store

    bundle = load_checkpoint(shipped_bundle(), Bundle)
    added = import_database(folder, lambda: Store.open(location, create=True), bundle, best)
    report = _report(location, "added", added.nests, added.records)
    for reason, count in added.left_out.items():
        click.echo(f"gnnperf: left out {count} tuning records: {reason}", err=True)
    return Report({**report.document, "left_out": dict(added.left_out)}, report.view)


def _report(location: str, done: str, nests: int, records: int) -> Report:
    from rich.text import Text

    document: dict[str, Any] = {"location": location, "done": done, "nests": nests, "records": records}
    return Report(document, Text(f"{location}: {done} {nests} nests and {records} records"))


def _info_table(found: StoreInfo) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False)
    for name, value in asdict(found).items():
        if isinstance(value, dict):
            value = "\n".join(f"{key}: {count}" for key, count in value.items())
        table.add_row(name.replace("_", " "), str(value))
    return table
