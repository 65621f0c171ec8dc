"""`gnnperf predict`: runtimes on GPUs that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import FILE, checkpoint_option
from gnnperf.cli.output import Report, Verb, human_time
from gnnperf.cli.page import page_is_wanted
from gnnperf.cli.pages import page_of_operators
from gnnperf.cli.predicted_configuration import configuration_report
from gnnperf.errors import InputError
from gnnperf.shipped import shipped

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec
    from gnnperf.frontends.operators import Operator
    from gnnperf.nn.runtime import RuntimeHead
    from gnnperf.retrieval.prediction import KernelPrediction


@click.command(cls=Verb, page=True)
@click.argument("kernel", required=False)
@click.option(
    "--gpu", "gpus", multiple=True, metavar="NAME", help="Of the catalog, or a YAML file; repeatable."
)
@click.option("--fused", is_flag=True, help="Pointwise operators join what runs right before them.")
@click.option(
    "--calibrate",
    type=FILE,
    metavar="FILE.csv",
    help="Runs on these GPUs, as rows of --table with latency_ms: 1 to 20 are enough.",
)
@click.option("--table", type=FILE, metavar="FILE.parquet", help="Predict every row instead of a KERNEL.")
@click.option("--devices", "described", type=FILE, metavar="FILE.yaml", help="GPUs that the table names.")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet")
@checkpoint_option
def predict(
    kernel: str | None,
    gpus: tuple[str, ...],
    fused: bool,
    calibrate: Path | None,
    table: Path | None,
    described: Path | None,
    output: Path | None,
    checkpoint: Path | None,
) -> Report:
    """Predict the runtime of an operator, a model, a tunable kernel, or a table of operators on GPUs.

    KERNEL is an operator with its sizes (linear:M=512,N=1024,K=768; bmm:B=..,M=..,N=..,K=..; softmax,
    layernorm, reduction, add, relu, ...:B=rows,H=columns; conv, pool, embedding), a torch exported program
    (model.pt2), or file.py:function that returns (module, example inputs). All is fp32. Or it is a
    configuration of a tunable kernel (gemm:MWG=64,NWG=64,M=1024; your-description.yaml:threads=128), where
    what is not given has its first value; --calibrate then takes runs with the kernel's parameters, device
    and runtime_ms as columns.

    The table has the columns op_family, op, device, B, M, N, K and H; predicted_ms, lo_ms and hi_ms (the 80%
    interval) are added.
    """  # fmt: skip
    from gnnperf.nn import load_checkpoint
    from gnnperf.nn.runtime import RuntimeHead
    from gnnperf.retrieval.gpu import RUNTIME, ConfigurationForecast
    from gnnperf.session import load

    if (kernel is None) == (table is None):
        raise InputError("expected a KERNEL, or a --table of them; see gnnperf predict --help")
    if table is not None:
        if output is None or gpus:
            raise InputError(
                "--table needs --output, and takes its GPUs from its column device, not from --gpu"
            )
        if page_is_wanted():
            raise InputError("--report is a page about a KERNEL; of a --table, read the --output")
        if fused:
            raise InputError("--fused is for models; leave it out, or give a KERNEL")
        return _bulk(
            load_checkpoint(checkpoint or shipped(RUNTIME), RuntimeHead), table, described, output, calibrate
        )
    if not gpus:
        raise InputError("expected at least one --gpu; `gnnperf devices list` shows those that are known")
    if described or output:
        given = "--devices" if described else "--output"
        raise InputError(f"{given} goes with --table; leave it out, or give a --table")
    found = load(checkpoint).predict(kernel, gpus, fused=fused, calibrate=calibrate)
    if isinstance(found, ConfigurationForecast):
        return configuration_report(found)
    for operator, count in found.left_out.items():
        click.echo(f"gnnperf: {kernel}: left out {count} of the unknown operator {operator}", err=True)
    document = {
        "kernel": kernel,
        "operators": len(found.operators),
        "left_out": found.left_out,
        "predictions": [_document(name, one, found.operators) for name, one in found.predictions.items()],
    }
    return Report(document, _view(found.predictions), page=partial(page_of_operators, found))


def _document(name: str, found: KernelPrediction, operators: Sequence[Operator]) -> dict[str, Any]:
    document: dict[str, Any] = {"gpu": name, "device": found.device.name, "objection": found.objection}
    if found.runtime_s is None or found.intervals_s is None or found.roofline_s is None:
        return document
    pairs = zip(operators, found.operators_s, strict=True)
    return {
        **document,
        "runtime_ms": found.runtime_s * 1e3,
        "roofline_ms": found.roofline_s * 1e3,
        "intervals_ms": {
            f"{level:.0%}": [low * 1e3, high * 1e3] for level, (low, high) in found.intervals_s.items()
        },
        "operators_ms": [{"operator": repr(operator), "runtime_ms": s * 1e3} for operator, s in pairs],
        "remarks": list(found.remarks),
    }


def _view(predictions: Mapping[str, KernelPrediction]) -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table("GPU", box=None)
    for heading in ("runtime", "80% interval", "95% interval", "roofline"):
        table.add_column(heading, justify="right")
    remarks = []
    for name, found in predictions.items():
        if found.runtime_s is None or found.intervals_s is None or found.roofline_s is None:
            table.add_row(name, "-", "-", "-", "-")
            remarks.append(f"{name}: no prediction: {found.objection}")
            continue
        spans = (
            f"{human_time(low)} to {human_time(high)}" for low, high in list(found.intervals_s.values())[1:]
        )
        table.add_row(name, human_time(found.runtime_s), *spans, human_time(found.roofline_s))
        remarks += [f"{name}: {remark}" for remark in found.remarks]
    return Group(table, *remarks)


def _bulk(
    head: RuntimeHead, path: Path, described: Path | None, output: Path, calibrate: Path | None
) -> Report:
    import pyarrow.parquet as pq

    from gnnperf.devices import read_devices
    from gnnperf.nn.runtime.operator_table import read_operators
    from gnnperf.retrieval.prediction import calibrate_from, predict_table

    devices: dict[str, DeviceSpec] = read_devices(described) if described else {}
    if calibrate is not None:
        if len(devices) != 1:
            raise InputError("--calibrate with --table needs --devices with the one GPU that was measured")
        (device,) = devices.values()
        head = calibrate_from(head, calibrate, device, devices)
    operators = read_operators(path)
    predicted = predict_table(head, operators, devices)
    try:
        pq.write_table(predicted, output)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None
    count, done = len(operators.usable), int(operators.usable.sum())
    left = f"; {count - done} rows are of no known family or lack a size" if done < count else ""
    document = {"table": path, "output": output, "rows": count, "predicted": done}
    return Report(document, f"{done} of {count} rows predicted into {output}{left}")
