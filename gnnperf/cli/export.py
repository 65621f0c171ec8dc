"""`gnnperf export`: models and stores for programs that run without Python."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from gnnperf.cli.options import FOLDER, output_folder
from gnnperf.cli.output import Report, Verb


@click.command(cls=Verb)
@click.argument("checkpoint", type=FOLDER)
@output_folder("Folder for the model and the store; made if need be.")
@click.option(
    "--format",
    "backend",
    type=click.Choice(["torchscript", "aoti"]),
    default="torchscript",
    show_default=True,
    help="aoti: compiled by AOTInductor for this kind of machine and release of torch.",
)
def export(checkpoint: Path, output: Path, backend: Literal["torchscript", "aoti"]) -> Report:
    """Write a checkpoint as one model file, and its store as one flat file beside it.

    The model takes plain tensors of any size and carries its metadata, which is checked when it is loaded,
    from Python (gnnperf.export.load_exported) or C++ (cpp/).
    """
    from rich.text import Text

    from gnnperf.export import export_checkpoint

    done = export_checkpoint(checkpoint, output, backend)
    lines = [
        f"{done.model}: {done.kind} model, {done.model_bytes / 1e6:.2f} MB, with {', '.join(done.functions)}"
    ]
    if done.store is not None:
        lines.append(
            f"{done.store}: {done.nests} nests with {done.records} records, {done.store_bytes / 1e6:.2f} MB"
        )
    return Report({"checkpoint": checkpoint, "format": backend, **asdict(done)}, Text("\n".join(lines)))
