"""`gnnperf retrieve KERNEL --gpu NAME`: configurations of a tunable kernel, for a GPU that is not here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.output import Report, to_json
from gnnperf.shipped import shipped

if TYPE_CHECKING:
    from gnnperf.retrieval.tunable import Proposal

TUNABLE = "checkpoints/tunable-kernels"
"""The released networks, among what is shipped."""


def retrieve_configurations(
    kernel: str,
    gpu: str,
    k: int,
    sizes: Mapping[str, float],
    data: Path | None,
    checkpoint: Path | None,
    output: Path | None,
) -> Report:
    """What `gnnperf retrieve` does with --gpu. Raises InputError."""
    from gnnperf.devices import load_device
    from gnnperf.errors import InputError
    from gnnperf.frontends.gpu_kernels import check_gpu, find_description
    from gnnperf.frontends.gpu_kernels.tables import data_or_none, load_tables
    from gnnperf.nn import load_checkpoint
    from gnnperf.nn.demand import DemandBundle
    from gnnperf.retrieval.tunable import kernel_tuner_cache, propose

    description, device = find_description(kernel), load_device(gpu)
    check_gpu(device)
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise InputError(f"--output: expected a file to write, in a folder that exists, got {output}")
    path = data_or_none(data)
    bundle = load_checkpoint(shipped(TUNABLE) if checkpoint is None else checkpoint, DemandBundle)
    if path is None:
        measured = bundle.tables(description)
    else:
        measured = load_tables(path, {description.name: description})
    proposal = propose(description, device, bundle, k, measured, sizes)
    if output is not None:
        document = to_json(kernel_tuner_cache(proposal, description, sizes))
        try:
            output.write_text(document + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"--output: cannot write {output}: {error.strerror}") from error
    if not measured:
        click.echo("gnnperf: no measurements of other GPUs: give --data, or set GNNPERF_DATA", err=True)
    document_ = {**vars(proposal), "device": device.name, "prediction": vars(proposal.prediction)}

    def page() -> str:
        from gnnperf.report import configurations_page

        return configurations_page(proposal, description, sizes)

    return Report(document_, _view(proposal), page=page)


def _view(proposal: Proposal) -> Any:
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
