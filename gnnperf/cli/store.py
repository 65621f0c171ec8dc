"""`gnnperf store`: look after a schedule store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import ANY_PATH, nests_checkpoint_option, refuse
from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from rich.table import Table

    from gnnperf.store import StoreInfo

file_argument = click.argument("file", metavar="FILE.jsonl.zst", type=ANY_PATH)


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
@click.argument("file", metavar="[FILE.jsonl.zst]", required=False, type=ANY_PATH)
@click.option(
    "--metaschedule", metavar="DIR", type=ANY_PATH,
    help="Instead of a file: a folder with database_workload.json and database_tuning_record.json of TVM's "
    "MetaSchedule. Records of other processors than this are kept, for them; those of GPUs are left out.",
)  # fmt: skip
@click.option(
    "--corpus", metavar="FOLDER", type=ANY_PATH,
    help="Instead of a file: a corpus of nests or TVM workloads that `gnnperf collect` measured. What it "
    "marks as held out is left out.",
)  # fmt: skip
@click.option(
    "--best", metavar="N", type=click.IntRange(1),
    help="With --metaschedule or --corpus: keep the N fastest schedules of each workload or nest.  "
    "[default: 8 traces of a workload; of a nest all that was measured, failures among them]",
)  # fmt: skip
@nests_checkpoint_option
@click.pass_context
def import_(
    ctx: click.Context,
    location: str,
    file: Path | None,
    metaschedule: Path | None,
    corpus: Path | None,
    best: int | None,
    checkpoint: Path,
) -> Report:
    """Add to STORE what an exported file, a corpus or a database has and it has not.

    STORE is made if need be. What does not come from a file is embedded by --checkpoint.
    """
    from gnnperf.errors import InputError
    from gnnperf.store import Store

    given = [source for source in (file, metaschedule, corpus) if source is not None]
    if len(given) != 1:
        got = "several" if given else "none"
        raise InputError(
            f"expected one of FILE.jsonl.zst, --metaschedule DIR and --corpus FOLDER, got {got}; give one"
        )
    if metaschedule is not None:
        return _import_metaschedule(location, metaschedule, checkpoint, best or 8)
    if corpus is not None:
        return _import_corpus(location, corpus, checkpoint, best)
    refuse(ctx, "an exported file", "best", "checkpoint")
    if file is None or not file.is_file():  # before STORE is made
        raise InputError(f"expected a file made by `gnnperf store export`, got {file}, which is no file")
    added = Store.open(location, create=True).import_(file)
    return _report(location, "added", added.nests, added.records)


def _import_corpus(location: str, folder: Path, checkpoint: Path, best: int | None) -> Report:
    from gnnperf.corpus.reader import read_corpus
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.retrieval.from_corpus import fill_store
    from gnnperf.store import Store

    measured, bundle = read_corpus(folder), load_checkpoint(checkpoint, Bundle)
    with TemporaryDirectory(prefix="gnnperf-import-") as temporary:  # what STORE has is not added again
        new = Store.open(temporary, create=True)
        fill_store(measured, bundle, new, best)
        added = Store.open(location, create=True).merge(new)
    return _report(location, "added", added.nests, added.records)


def _import_metaschedule(location: str, folder: Path, checkpoint: Path, best: int) -> Report:
    from gnnperf.integrations.tvm import import_database
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.store import Store

    bundle = load_checkpoint(checkpoint, Bundle)
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
