"""`gnnperf embed`: what retrieval sees of a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import checkpoint_option, kernel_options
from gnnperf.cli.output import Report, Verb, progress
from gnnperf.errors import GnnperfError

if TYPE_CHECKING:
    from rich.table import Table


@click.command(cls=Verb)
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True)
@kernel_options
@checkpoint_option
def embed(
    kernels: tuple[str, ...], symbols: dict[str, int], inputs: str | None, seed: int, checkpoint: Path
) -> Report:
    """Print the vector and the digest of every loop nest.

    KERNEL is path/to/file.py:name (a @dace.program) or an .sdfg/.sdfgz file. Nests with equal digests are
    equal programs; the distance of two nests is 1 - the dot product of their vectors.
    """
    from gnnperf.frontends.dace import load_kernel
    from gnnperf.nests import nest_graph
    from gnnperf.nn import load_bundle

    bundle = load_bundle(checkpoint)
    rows: list[dict[str, Any]] = []
    graphs = []
    with progress("reading", len(kernels)) as advance:
        for spec in kernels:
            advance(0, spec)
            for unit in load_kernel(spec, symbols, inputs, seed).units:
                row: dict[str, Any] = {"kernel": spec, "nest": unit.nest.name, "skipped": unit.skipped}
                rows.append(row)
                if unit.skipped is None:
                    graph = nest_graph(unit.nest)
                    graphs.append(graph)
                    row["digest"] = graph.digest
            advance(1)
    if not graphs:
        reasons = "; ".join(dict.fromkeys(str(row["skipped"]) for row in rows)) or "they have no loop nests"
        raise GnnperfError(f"nothing to embed in {', '.join(kernels)}: {reasons}")

    embedded = [row for row in rows if row["skipped"] is None]
    vectors = bundle.embed(graphs)
    for row, vector in zip(embedded, vectors, strict=True):
        row["embedding"] = vector
    return Report({"encoder_id": bundle.encoder_id, "nests": rows}, _table(rows))


def _table(rows: list[dict[str, Any]]) -> Table:
    """One line per nest, with the nearest of the other nests."""
    from rich.table import Table

    table = Table("kernel", "nest", "digest", "nearest of these", "distance", box=None)
    for row in rows:
        if row["skipped"] is not None:
            table.add_row(row["kernel"], row["nest"], f"skipped: {row['skipped']}")
            continue
        others = [other for other in rows if other is not row and other["skipped"] is None]
        distance = {id(other): 1 - float(row["embedding"] @ other["embedding"]) for other in others}
        nearest = min(others, key=lambda other: distance[id(other)], default=None)
        near = (nearest["nest"], f"{distance[id(nearest)]:.4f}") if nearest else ("", "")
        table.add_row(row["kernel"], row["nest"], row["digest"][:12], *near)
    return table
