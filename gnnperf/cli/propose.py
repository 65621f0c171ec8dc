"""`gnnperf propose KERNEL --gpu NAME`: configurations of a tunable kernel, for a GPU that is not here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import ANY_PATH, checkpoint_option, data_option, sizes_option
from gnnperf.cli.output import Report, Verb
from gnnperf.documents import to_json

if TYPE_CHECKING:
    from gnnperf.retrieval.tunable import ConfigurationProposal


@click.command(cls=Verb, page=True)
@click.argument("kernel")
@click.option("--gpu", required=True, metavar="NAME|YAML", help="Of the catalog, or a YAML file.")
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Configurations to propose."
)
@sizes_option
@data_option("tunable_kernels.parquet, measured on other GPUs", "$GNNPERF_DATA, else what was released")
@click.option(
    "--ignore",
    multiple=True,
    metavar="NAME",
    help="Parameter of --data that the description lacks; repeatable.",
)
@checkpoint_option
@click.option("--output", "-o", type=ANY_PATH, metavar="FILE.json", help="A cache file for Kernel Tuner.")
def propose(
    kernel: str, gpu: str, k: int, sizes: dict[str, float], data: Path | None, ignore: tuple[str, ...],
    checkpoint: Path | None, output: Path | None,
) -> Report:  # fmt: skip
    """Propose configurations of a tunable GPU kernel to try first on a GPU, which need not be here.

    KERNEL is the name of a description (gemm, convolution2d, ...) or a YAML file with one of your own. What
    other GPUs measured counts; a kernel that was never measured is ranked from physics and from other
    kernels. Nothing is measured.
    """
    from gnnperf.errors import InputError
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
    return Group(
        Text(f"{proposal.kernel} on {proposal.device.name}: the first {len(proposal.configurations)} of "
             f"{proposal.candidates:,} configurations to try; {rest}"),
        table,
        Text("in all of them: " + ", ".join(f"{n}={v}" for n, v in same.items())),
    )  # fmt: skip
