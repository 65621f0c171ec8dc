"""`gnnperf measure`: what takes a GPU, and what is prepared for a machine that has one."""

from __future__ import annotations

from pathlib import Path

import click

from gnnperf.cli.collect import log_report
from gnnperf.cli.options import FILE, FOLDER, output_folder
from gnnperf.cli.output import Report, Verb, going_on, progress


@click.group()
def measure() -> None:
    """Measure on an NVIDIA GPU: pack (schedules for one elsewhere), run (a pack), gpu (operators)."""


@measure.command(cls=Verb)
@click.argument("config", type=FILE)
@click.option(
    "--arch", default="h100", show_default=True, metavar="NAME",
    help="What for: a GPU of the catalog (`gnnperf devices list`), or sm_80, sm_90a, ...",
)  # fmt: skip
@output_folder("Folder of the pack; what it already holds is not built again.", metavar="PACK")
@click.option(
    "--only", metavar="NAME", multiple=True, help="Only this workload or kind of workload; may be repeated."
)
@click.option(
    "--processes", default=1, show_default=True, metavar="N", type=click.IntRange(1),
    help="Workloads at a time.",
)  # fmt: skip
def pack(config: Path, arch: str, output: Path, only: tuple[str, ...], processes: int) -> Report:
    """Sample and build schedules for a GPU that need not be here.

    CONFIG is of the kind `pack` (see configs/corpus/cuda.yaml). PACK then holds all that measuring takes but
    Python with numpy, PyYAML and apache-tvm-ffi. Stopped, the same command goes on.
    """
    from gnnperf.corpus.config import PackConfig, load_config
    from gnnperf.errors import InputError

    settings = load_config(config)
    if not isinstance(settings, PackConfig):
        raise InputError(
            f"{config}: kind: expected pack, got another; collect it with: gnnperf collect {config}"
        )
    if only:
        settings = settings.only(only)
    from gnnperf.corpus.remote import PackWriter
    from gnnperf.corpus.remote.build import has_nvcc
    from gnnperf.corpus.traces import prepare
    from gnnperf.frontends.tvm.target import cuda_target

    prepare()
    target = cuda_target(arch)
    if not has_nvcc():
        _say("no nvcc here: the pack gets CUDA source, which nvcc must compile where it is measured")
    with going_on(lambda: f"what is built is kept in {output}"):
        log = PackWriter(output, settings, target, processes, _say).run()
    return log_report(log)


@measure.command(cls=Verb)
@click.argument("folder", metavar="PACK", type=FOLDER)
@output_folder("Folder of the corpus; what it already holds is not measured again.")
@click.option("--seal", is_flag=True, help="Compress the log when everything is measured.")
def run(folder: Path, output: Path, seal: bool) -> Report:
    """Verify and time the schedules of a pack on the first GPU of this machine.

    Where gnnperf is not installed, `python PACK/program/measure.py -o DIR` does the same.
    """
    from gnnperf.measure.record_log import RecordLog
    from gnnperf.measure.remote.start import run_pack

    with going_on(lambda: f"what is measured is kept in {output}"):
        log = run_pack(folder, output, _say)
    if seal:
        RecordLog(output).seal()
    return log_report(log)


@measure.command(cls=Verb)
@output_folder("Folder for gpu_operators.parquet and measured.json.")
def gpu(output: Path) -> Report:
    """Time operators of torch on the first GPU of this machine.

    The table is what `gnnperf predict --table` and `gnnperf eval gpu-operators` read. It takes a torch that
    was built with CUDA.
    """
    from rich.text import Text

    from gnnperf.measure.gpu_operators import cuda_torch, measure_operators, operator_count

    torch, _ = cuda_torch()
    left_out: list[str] = []
    with progress("measuring", operator_count(torch)) as advance:
        done = measure_operators(output, left_out.append, advance)
    for text in left_out:
        _say(f"left out: {text}")
    document = {**done, "left_out": left_out}
    return Report(document, Text(f"{done['device']}: {done['operators']} operators into {done['table']}"))


def _say(text: str) -> None:
    click.echo(text, err=True)
