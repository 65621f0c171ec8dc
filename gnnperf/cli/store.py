"""`gnnperf store`: look after a schedule store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import ANY_PATH, nests_checkpoint_option, refuse
from gnnperf.cli.output import Report, Verb
from gnnperf.shipped import shipped

if TYPE_CHECKING:
    from rich.table import Table

    from gnnperf.store import Changed, StoreInfo

TOLD = 20
"""Reasons for refusals that are told; `--json` has the first thousand refusals one by one."""

file_argument = click.argument("file", metavar="FILE.jsonl.zst", type=ANY_PATH)


@click.group()
def store() -> None:
    """Look after a schedule store: info, merge, check, prune, export, import.

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
    from gnnperf.store import Changed, Store

    sources = [Store.open(other) for other in others]  # before STORE is made: a name may be mistyped
    target = Store.open(location, create=True)
    widths = _known_widths()
    changes = [target.merge(source, widths) for source in sources]
    added = Changed(
        sum(c.nests for c in changes),
        sum(c.records for c in changes),
        sum(c.refused for c in changes),
        tuple(reason for c in changes for reason in c.reasons),
    )
    return _report(location, "added", added)


@store.command(cls=Verb)
@click.argument("location", metavar="STORE")
def check(location: str) -> Report:
    """Check everything in STORE as if it were imported: graphs, embeddings, schedules, figures, names.

    What fails is told with its reason, and is not used by anything; the exit code then is 1.
    """
    from gnnperf.errors import GnnperfError
    from gnnperf.store import Store

    found = Store.open(location).check(_known_widths())
    report = _report(location, "checked", found)
    if not found.refused:
        return report
    total = found.nests + found.records + found.refused
    failure = GnnperfError(
        f"{location}: {found.refused} of {total} failed; `gnnperf store prune --failed-check {location}` "
        "removes them"
    )
    return replace(report, failure=failure)


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
@click.option("--failed-check", is_flag=True, help="Remove what `gnnperf store check` tells.")
def prune(
    location: str,
    keep_best: int | None,
    failure_days: int | None,
    encoder_id: str | None,
    failed_check: bool,
) -> Report:
    """Remove what is not wanted any more, and compact the files.

    Without options only what was superseded is removed.
    """
    from gnnperf.store import Store

    age = None if failure_days is None else timedelta(days=failure_days)
    widths = _known_widths() if failed_check else {}
    removed = Store.open(location).prune(keep_best, age, encoder_id, failed_check, widths)
    return _report(location, "removed", removed)


@store.command(cls=Verb)
@click.argument("location", metavar="STORE")
@file_argument
def export(location: str, file: Path) -> Report:
    """Write everything in STORE to one compressed file."""
    from gnnperf.store import Store

    written = Store.open(location).export(file)
    return _report(str(file), "wrote", written)


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
    "[default: 16 of a nest, and what failed; 8 of a workload]",
)  # fmt: skip
@click.option(
    "--trust", metavar="KEYS", type=ANY_PATH,
    help="Import FILE only if one of these public keys (lines as in ~/.ssh/id_ed25519.pub) signed it: "
    "FILE.sig is what `ssh-keygen -Y sign -n gnnperf-store -f KEY FILE` writes.",
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
    trust: Path | None,
    checkpoint: Path,
) -> Report:
    """Add to STORE what an exported file, a corpus or a database has and it has not.

    STORE is made if need be. What does not come from a file is embedded by --checkpoint. What does not pass
    the checks of `gnnperf store check` is refused and told, and the rest is added.
    """
    from gnnperf.errors import InputError
    from gnnperf.store import Store

    given = [source for source in (file, metaschedule, corpus) if source is not None]
    if len(given) != 1:
        got = "several" if given else "none"
        raise InputError(
            f"expected one of FILE.jsonl.zst, --metaschedule DIR and --corpus FOLDER, got {got}; give one"
        )
    if file is None:
        refuse(ctx, "what is no exported file", "trust")
    if metaschedule is not None:
        return _import_metaschedule(location, metaschedule, checkpoint, best or 8)
    if corpus is not None:
        return _import_corpus(location, corpus, checkpoint, best)
    refuse(ctx, "an exported file", "best", "checkpoint")
    if file is None or not file.is_file():  # before STORE is made
        raise InputError(f"expected a file made by `gnnperf store export`, got {file}, which is no file")
    signer = None
    if trust is not None:  # before STORE is made, too
        from gnnperf.store.signatures import check_signature

        signer = check_signature(file, trust)
    report = _report(location, "added", Store.open(location, create=True).import_(file, _known_widths()))
    return replace(report, document={**report.document, "signed_by": signer})


def _import_corpus(location: str, folder: Path, checkpoint: Path, best: int | None) -> Report:
    from gnnperf.corpus.reader import read_corpus
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.retrieval.from_corpus import fill_store
    from gnnperf.store import Store

    measured, bundle = read_corpus(folder), load_checkpoint(checkpoint, Bundle)
    with TemporaryDirectory(prefix="gnnperf-import-") as temporary:  # what STORE has is not added again
        new = Store.open(temporary, create=True)
        fill_store(measured, bundle, new, best)
        added = Store.open(location, create=True).merge(new, new.widths())
    return _report(location, "added", added)


def _import_metaschedule(location: str, folder: Path, checkpoint: Path, best: int) -> Report:
    from gnnperf.integrations.tvm import import_database
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.store import Changed, Store

    bundle = load_checkpoint(checkpoint, Bundle)
    added = import_database(folder, lambda: Store.open(location, create=True), bundle, best)
    report = _report(location, "added", Changed(added.nests, added.records))
    for reason, count in added.left_out.items():
        click.echo(f"gnnperf: left out {count} tuning records: {reason}", err=True)
    return Report({**report.document, "left_out": dict(added.left_out)}, report.view)


def _known_widths() -> Mapping[str, int]:
    """Of the embeddings of the released encoder, in which most stores are."""
    from gnnperf.store import Store

    return Store.open(shipped("checkpoints/loop-nests/store")).widths()


def _report(location: str, done: str, changed: Changed) -> Report:
    from rich.text import Text

    alike: dict[str, list[str]] = {}
    for refused in changed.reasons:
        alike.setdefault(refused.reason, []).append(refused.where)
    for reason, (first, *others) in [*alike.items()][:TOLD]:
        where = f"{first} and {len(others)} more" if others else first
        click.echo(f"gnnperf: refused {where}: {reason}", err=True)
    if len(alike) > TOLD:
        click.echo(f"gnnperf: refused more, for {len(alike) - TOLD} other reasons; see --json", err=True)
    document: dict[str, Any] = {
        "location": location,
        "done": done,
        "nests": changed.nests,
        "records": changed.records,
    }
    words = f"{location}: {done} {changed.nests} nests and {changed.records} records"
    if changed.refused:
        document |= {"refused": changed.refused, "reasons": [asdict(reason) for reason in changed.reasons]}
        words += f", refused {changed.refused}"
    return Report(document, Text(words))


def _info_table(found: StoreInfo) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False)
    for name, value in asdict(found).items():
        if isinstance(value, dict):
            value = "\n".join(f"{key}: {count}" for key, count in value.items())
        table.add_row(name.replace("_", " "), str(value))
    return table
