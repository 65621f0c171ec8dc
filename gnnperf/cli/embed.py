"""`gnnperf embed`: what retrieval sees of a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import kernel_options, open_session
from gnnperf.cli.output import Report, Verb, progress

if TYPE_CHECKING:
    from rich.table import Table


@click.command(cls=Verb)
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True)
@kernel_options
def embed(kernels: tuple[str, ...], checkpoint: Path | None, **asked: Any) -> Report:
    """Print the vector and the digest of every loop nest, or function.

    KERNEL is as for `gnnperf retrieve`. Nests with equal digests are equal programs; the distance of two
    nests is 1 - the dot product of their vectors.
    """
    session = open_session(checkpoint, None, no_store=True)
    with progress("reading", len(kernels)) as advance:
        found = session.embed(*kernels, **asked, advance=advance)
    rows = [
        {"kernel": one.kernel, "nest": one.name, "digest": one.digest, "embedding": one.vector}
        for one in found
    ]
    return Report({"encoder_id": session.encoder.encoder_id, "nests": rows}, _table(rows))


def _table(rows: list[dict[str, Any]]) -> Table:
    """One line per nest, with the nearest of the other nests."""
    from rich.table import Table

    table = Table("kernel", "nest", "digest", "nearest of these", "distance", box=None)
    for row in rows:
        distances = [(1 - float(row["embedding"] @ o["embedding"]), o["nest"]) for o in rows if o is not row]
        distance, nearest = min(distances, default=(None, ""))
        near = "" if distance is None else f"{distance:.4f}"
        table.add_row(row["kernel"], row["nest"], row["digest"][:12], nearest, near)
    return table
