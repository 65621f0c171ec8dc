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
    kernels: tuple[str, ...], symbols: dict[str, float], inputs: str | None, seed: int, checkpoint: Path
) -> Report:
    """Print the vector and the digest of every loop nest.

    KERNEL is path/to/file.py:name (a @dace.program) or an .sdfg/.sdfgz file. Nests with equal digests are
    equal programs; the distance of two nests is 1 - the dot product of their vectors.
    """
    from gnnperf.backends.cpp.cases import capture_for_graphs, unit_graph
    from gnnperf.frontends.dace import load_kernel
    from gnnperf.measure import Compiler, Runner
    from gnnperf.nn import Bundle, load_checkpoint

    bundle = load_checkpoint(checkpoint, Bundle)
    rows: list[dict[str, Any]] = []
    graphs = []
    with progress("reading", len(kernels)) as advance:
        for spec in kernels:
            kernel = load_kernel(spec, symbols, inputs, seed)
            with Compiler() as compiler, Runner() as runner:
                capture_for_graphs(kernel, compiler, runner)
            for unit in kernel.units:
                graphs.append(unit_graph(unit))
                rows.append({"kernel": spec, "nest": unit.name, "digest": graphs[-1].digest})
            left_out = [f"{part.label}: {part.reason}" for part in kernel.skipped]
            if not kernel.units:
                raise GnnperfError(f"{spec}: no loop nest to embed; {'; '.join(left_out) or 'it has none'}")
            for part in left_out:
                click.echo(f"gnnperf: {spec}: left out {part}", err=True)
            advance()
    for row, vector in zip(rows, bundle.embed(graphs), strict=True):
        row["embedding"] = vector
    return Report({"encoder_id": bundle.encoder_id, "nests": rows}, _table(rows))


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
