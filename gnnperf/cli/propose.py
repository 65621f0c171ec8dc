"""`gnnperf propose KERNEL --gpu NAME`: configurations of a tunable kernel, for a GPU that is not here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import ANY_PATH, FILE, checkpoint_option, data_option, refuse, sizes_option
from gnnperf.cli.output import Report, Verb
from gnnperf.documents import to_json
from gnnperf.errors import InputError

if TYPE_CHECKING:
    from gnnperf.retrieval.check import TableCheck
    from gnnperf.retrieval.tunable import ConfigurationProposal


@click.command(cls=Verb, page=True)
@click.argument("kernel")
@click.argument("table", required=False, type=FILE, metavar="[TABLE]")
@click.option("--gpu", "gpus", multiple=True, metavar="NAME|YAML", help="Of the catalog, or a YAML file.")
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Configurations to propose."
)
@click.option(
    "--check", is_flag=True, help="Tell how well the description of KERNEL ranks what TABLE measured."
)
@sizes_option
@data_option("tunable_kernels.parquet, measured on other GPUs", "$GNNPERF_DATA, else what was released")
@click.option(
    "--ignore",
    multiple=True,
    metavar="NAME",
    help="Parameter of --data or TABLE that the description lacks; repeatable.",
)
@checkpoint_option
@click.option("--output", "-o", type=ANY_PATH, metavar="FILE.json", help="A cache file for Kernel Tuner.")
def propose(
    kernel: str, table: Path | None, gpus: tuple[str, ...], k: int, check: bool,
    sizes: dict[str, float], data: Path | None, ignore: tuple[str, ...], checkpoint: Path | None,
    output: Path | None,
) -> Report:  # fmt: skip
    """Propose configurations of a tunable GPU kernel to try first on a GPU, which need not be here.

    KERNEL is the name of a description (gemm, convolution2d, ...) or a YAML file with one of your own. What
    other GPUs measured counts; a kernel that was never measured is ranked by physics alone. Nothing is
    measured. --data and TABLE are tunable_kernels.parquet or what Kernel Tuner wrote on
    one GPU (.json): a cache, or T4 results in a file that is named after the GPU.

    `propose --check KERNEL TABLE` ranks the configurations of TABLE on each of its GPUs as if nobody had
    measured the kernel, and tells whether that is better than trying configurations at random.
    """
    if check:
        return _check(kernel, table, k, ignore, checkpoint)
    if table is not None:
        raise InputError(f"expected --check with {table}; measurements of other GPUs are given as --data")
    if not gpus:
        raise InputError("expected --gpu; `gnnperf devices list` shows those that are known")
    gpu, *others = dict.fromkeys(gpus)
    if others:
        raise InputError(f"expected one --gpu, got {', '.join((gpu, *others))}; propose for one at a time")
    from gnnperf.frontends.gpu_kernels import find_description
    from gnnperf.retrieval.tunable import kernel_tuner_cache
    from gnnperf.session import load

    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise InputError(f"--output: expected a file to write, in a folder that exists, got {output}")
    proposal = load(checkpoint).propose(kernel, gpu, k=k, sizes=sizes, data=data, ignore=ignore)
    description = find_description(kernel)
    if output is not None:
        document = to_json(kernel_tuner_cache(proposal, description, sizes))
        try:
            output.write_text(document + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"--output: cannot write {output}: {error.strerror}") from error
    if not proposal.spaces:
        click.echo("gnnperf: no measurements of other GPUs: give --data, or set GNNPERF_DATA", err=True)
    about = {**vars(proposal), "device": proposal.device.name, "prediction": vars(proposal.prediction)}

    def page() -> str:
        from gnnperf.report import configurations_page

        return configurations_page(proposal, description, sizes)

    return Report(about, _view(proposal), page=page)


def _check(
    kernel: str, table: Path | None, k: int, ignore: tuple[str, ...], checkpoint: Path | None
) -> Report:
    from gnnperf.session import load

    if table is None:
        raise InputError("--check: expected KERNEL and a TABLE that was measured, got KERNEL alone")
    refuse(click.get_current_context(), "--check", "gpus", "sizes", "data", "output", "page_path")
    rows = load(checkpoint).check_description(kernel, table, k=k, ignore=ignore)
    about = [{**vars(row), "better_than_random": row.better} for row in rows]
    return Report({"kernel": kernel, "table": table, "k": k, "tables": about}, _verdict(kernel, rows, k))


def _verdict(kernel: str, rows: Sequence[TableCheck], k: int) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    view = Table("space", "GPU", "measured", "correlation", "first", f"best of {k}", "random", "", box=None)
    for row in rows:
        told = "-" if row.rank_correlation is None else f"{row.rank_correlation:.2f}"
        reached = f"{row.first:.2f}", f"{row.best:.2f}", f"{row.random_first:.2f}, {row.random_best:.2f}"
        word = "better than random" if row.better else "not better"
        view.add_row(row.space, row.gpu, f"{row.configurations:,}", told, *reached, word)
    good = sum(row.better for row in rows)
    return Group(
        Text(f"{kernel}: what its description proposes, as a share of the best that was measured"),
        view,
        Text(f"better than random on {good} of {len(rows)} tables"
             + ("" if good == len(rows) else ": elsewhere, do not rely on the description")),
    )  # fmt: skip


def _view(proposal: ConfigurationProposal) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    names = [n for n in proposal.configurations[0] if len({c[n] for c in proposal.configurations}) > 1]
    same = {n: v for n, v in proposal.configurations[0].items() if n not in names}
    table = Table("", *names, "predicted ms", "80% interval", box=None)
    lo, hi = proposal.prediction.interval_ms["80"]
    for i, configuration in enumerate(proposal.configurations):
        cells = [str(i + 1), *(str(configuration[n]) for n in names)]
        table.add_row(*cells, f"{proposal.prediction.runtime_ms[i]:.3g}", f"[{lo[i]:.3g}, {hi[i]:.3g}]")
    rest = f"measured elsewhere: {', '.join(proposal.spaces)}" if proposal.spaces else "not measured anywhere"
    head = (
        f"{proposal.kernel} on {proposal.device.name}: the first {len(proposal.configurations)} of "
        f"{proposal.candidates:,} configurations to try; {rest}"
    )
    common = "in all of them: " + ", ".join(f"{n}={v}" for n, v in same.items())
    return Group(Text(head), table, *([Text(common)] if same else []))
