"""`gnnperf predict`: runtimes on GPUs that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import FILE, checkpoint_option, refuse
from gnnperf.cli.output import Report, Verb, human_time
from gnnperf.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from gnnperf.devices import DeviceSpec
    from gnnperf.frontends.operators import Operator
    from gnnperf.nn.runtime import RuntimeHead
    from gnnperf.report import Forecast
    from gnnperf.retrieval.gpu import ConfigurationForecast, OperatorForecast
    from gnnperf.retrieval.prediction import KernelPrediction, TablePrediction


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
@click.option(
    "--dtype",
    metavar="NAME",
    help="What fp32 tensors are taken for: fp64, tf32, fp16, bf16, fp8, int8.",
)
@click.option(
    "--table", type=FILE, metavar="FILE", help="Predict every row of a .parquet or .csv instead of a KERNEL."
)
@click.option("--models", type=FILE, metavar="FILE", help="Predict every whole model of such a table.")
@click.option("--devices", "described", type=FILE, metavar="FILE.yaml", help="GPUs that the table names.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A .parquet or .csv, with a --table or --models.",
)
@checkpoint_option
def predict(
    kernel: str | None,
    gpus: tuple[str, ...],
    fused: bool,
    calibrate: Path | None,
    dtype: str | None,
    table: Path | None,
    models: Path | None,
    described: Path | None,
    output: Path | None,
    checkpoint: Path | None,
) -> Report:
    """Predict the runtime of an operator, a model, a tunable kernel, or a table of operators on GPUs.

    KERNEL is an operator with its sizes (linear:M=512,N=1024,K=768; bmm:B=..,M=..,N=..,K=..; softmax,
    layernorm, rmsnorm, reduction, add, relu, ...:B=rows,H=columns; conv, pool, embedding), a torch exported
    program (model.pt2), or file.py:function that returns (module, example inputs). Operators are fp32, or
    what dtype=fp16 among their sizes says; models what their tensors are. Only fp32 was measured: other
    dtypes are physics with wider intervals, and one that a GPU is not known to have is refused. Or it is a
    configuration of a tunable kernel (gemm:MWG=64,NWG=64,M=1024; your-description.yaml:threads=128), where
    what is not given has its first value; --calibrate then takes runs with the kernel's parameters, device
    and runtime_ms as columns.

    The table has the columns op_family, op, device, B, M, N, K and H, and perhaps dtype (products
    sum over K; over N where columns kernel_name, grid_x, grid_y and grid_z of what ran say so),
    and of a conv conv_cin, conv_cout, conv_k, conv_img, conv_stride, conv_pad and perhaps conv_groups;
    of other families (attention, fused_attention, embedding, pool, rmsnorm, reduction, copy, cat) the sizes
    that they have as a KERNEL. predicted_ms, lo_ms and hi_ms (the 80% interval) are added, and objection:
    why a row has none.

    The table of models has the columns desc, device and num_layer, with their graphs in
    gpu_models_opgraphs.parquet beside it; or it is such graphs (a row is a node: desc, OpName, FwOps, BwOps,
    AccOps, InputShapes, in_repeated_layer) with a column num_layer, for every --gpu. With operators that run
    backwards it is a step of training. Models that run on several GPUs get an objection, and no prediction.
    """  # fmt: skip
    from gnnperf.retrieval.gpu import ConfigurationForecast
    from gnnperf.session import load

    context, session = click.get_current_context(), load(checkpoint)
    if sum(given is not None for given in (kernel, table, models)) != 1:
        raise InputError(
            "expected a KERNEL, or a --table of them, or a table of --models; see gnnperf predict --help"
        )
    if models is not None:
        if output is None:
            raise InputError("--models needs --output")
        refuse(context, "a table of --models", "page_path", "fused", "dtype")
        return _models(session.runtime_head, models, tuple(dict.fromkeys(gpus)), described, output, calibrate)
    if table is not None:
        if output is None:
            raise InputError("--table needs --output")
        refuse(context, "a --table", "page_path", "fused", "dtype", "gpus")
        return _bulk(session.runtime_head, table, described, output, calibrate)
    refuse(context, "a KERNEL", "described", "output")
    found = session.predict(kernel, gpus, fused=fused, calibrate=calibrate, dtype=dtype)
    if isinstance(found, ConfigurationForecast):
        return _configuration_report(found)
    for note in _not_known(found):
        click.echo(f"gnnperf: {kernel}: {note}", err=True)
    rows = [_row(name, one, found.operators) for name, one in found.predictions.items()]
    document = {
        "kernel": kernel, "operators": len(found.operators), "unknown": found.unknown,
        "left_out": found.left_out, "predictions": rows,
    }  # fmt: skip
    return Report(document, _view(rows), page=partial(_page_of_operators, found))


def _not_known(found: OperatorForecast) -> list[str]:
    """A line for every operator of PyTorch that is not known."""
    return [
        *(
            f"{name} is not known: {n} of it taken for reading and writing"
            for name, n in found.unknown.items()
        ),
        *(f"{name} is not known: {n} of it left out" for name, n in found.left_out.items()),
    ]


def _row(name: str, found: KernelPrediction, operators: Sequence[Operator] = ()) -> dict[str, Any]:
    """Of a prediction for a GPU, by the name that was given."""
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


def _view(rows: Sequence[Mapping[str, Any]], remarks: Sequence[str] = ()) -> Any:
    """A table of predictions as they stand in the document, and what is to be said of them."""
    from rich.console import Group
    from rich.table import Table

    headings = ["runtime", "80% interval", "95% interval"]
    headings += ["roofline"] if any("roofline_ms" in row for row in rows) else []
    table, told = Table("GPU", box=None), [*remarks]
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        if row["objection"]:
            table.add_row(row["gpu"], *("-" for _ in headings))
            told.append(f"{row['gpu']}: no prediction: {row['objection']}")
            continue
        spans = (row["intervals_ms"][level] for level in ("80%", "95%"))
        cells = [f"{_time(low)} to {_time(high)}" for low, high in spans]
        cells += [_time(row["roofline_ms"])] if "roofline_ms" in row else []
        table.add_row(row["gpu"], _time(row["runtime_ms"]), *cells)
        told += [f"{row['gpu']}: {remark}" for remark in row.get("remarks", ())]
    return Group(table, *told)


def _time(milliseconds: float) -> str:
    return human_time(milliseconds * 1e-3)


def _bulk(
    head: RuntimeHead, path: Path, described: Path | None, output: Path, calibrate: Path | None
) -> Report:
    from gnnperf.nn.runtime.operator_table import read_operators
    from gnnperf.retrieval.prediction import predict_table

    operators = read_operators(path)
    found = predict_table(head, operators, _devices(described), calibrate)
    return _tables_report("table", "rows", path, found, output)


def _models(
    head: RuntimeHead,
    path: Path,
    gpus: tuple[str, ...],
    described: Path | None,
    output: Path,
    calibrate: Path | None,
) -> Report:
    from gnnperf.devices import load_device
    from gnnperf.nn.runtime.model_table import models_of, read_graphs
    from gnnperf.retrieval.prediction import predict_models

    devices = _devices(described) | {gpu: load_device(gpu) for gpu in gpus}
    models, graphs = models_of(path, gpus)
    if not graphs.is_file():
        raise InputError(f"expected the graphs of {path} in {graphs}; put them there")
    found = predict_models(head, models, read_graphs(graphs), devices, calibrate)
    return _tables_report("models", "models", path, found, output)


def _tables_report(option: str, what: str, path: Path, found: TablePrediction, output: Path) -> Report:
    """Write a predicted table, and say how much of it is."""
    count, done = len(found.table), _written(found.table, output)
    document = {option: path, "output": output, "rows": count, "predicted": done, "remarks": found.remarks}
    return Report(document, "\n".join([f"{done} of {count} {what} predicted into {output}", *found.remarks]))


def _devices(described: Path | None) -> dict[str, DeviceSpec]:
    from gnnperf.devices import read_devices

    return read_devices(described) if described else {}


def _written(predicted: pa.Table, output: Path) -> int:
    """Write a table, as CSV or Parquet; how many of its rows are predicted."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    write = pyarrow.csv.write_csv if output.suffix == ".csv" else pq.write_table
    try:
        write(predicted, output)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None
    return len(predicted) - int(predicted["predicted_ms"].null_count)


def _configuration_report(found: ConfigurationForecast) -> Report:
    """Runtimes and intervals of a configuration, by GPU."""
    rows = [_row(name, one) for name, one in found.predictions.items()]
    document = {
        "kernel": found.kernel, "measured_elsewhere": found.measured, "remarks": found.remarks,
        "predictions": rows,
    }  # fmt: skip
    return Report(document, _view(rows, found.remarks), page=partial(_page_of_configuration, found))


def _forecasts(predictions: Mapping[str, KernelPrediction], **about: Any) -> list[Forecast]:
    """As the page takes them. about: the other fields, of the kernel."""
    from gnnperf.report import Forecast

    return [
        Forecast(
            name, one.device, one.runtime_s,
            {f"{level:.0%}": ends for level, ends in (one.intervals_s or {}).items()} or None,
            one.roofline_s, operators_s=one.operators_s, remarks=one.remarks, objection=one.objection,
            **about,
        )
        for name, one in predictions.items()
    ]  # fmt: skip


def _page_of_operators(found: OperatorForecast) -> str:
    """HTML of `predict` for operators."""
    from gnnperf.report import prediction_page

    workloads, operators = found.workloads, found.operators
    most = max(workloads, key=lambda workload: (workload.kind == "contraction", workload.flops))
    forecasts = _forecasts(
        found.predictions,
        flops=sum(w.flops for w in workloads),
        size_bytes=sum(w.read_bytes + w.written_bytes for w in workloads),
        dtype=most.dtype,
        matrix=most.kind == "contraction",
    )
    graph = operators[0].graph() if len(operators) == 1 else None
    return prediction_page(found.kernel, forecasts, list(map(repr, operators)), _not_known(found), graph)


def _page_of_configuration(found: ConfigurationForecast) -> str:
    """HTML of `predict` for a configuration of a tunable kernel."""
    from gnnperf.frontends.gpu_kernels import scheduled_graph
    from gnnperf.frontends.gpu_kernels.tables import Candidates
    from gnnperf.report import prediction_page

    device = next(iter(found.predictions.values())).device
    physics = Candidates(found.description, device, [found.configuration]).physics
    flops, size_bytes = (float(physics[what][0]) for what in ("flops", "distinct_bytes"))
    dtype = found.description.dtype
    forecasts = _forecasts(found.predictions, flops=flops, size_bytes=size_bytes, dtype=dtype)
    graph = scheduled_graph(found.description, found.configuration)
    return prediction_page(found.kernel, forecasts, notes=found.remarks, graph=graph)
