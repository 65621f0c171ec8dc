"""`gnnperf devices`: the catalog and this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec, FoundGpu


@click.group()
def devices() -> None:
    """Describe this machine and the devices gnnperf knows."""


@devices.command("list", cls=Verb)
def list_() -> Report:
    """List this host and the catalog."""
    from rich.table import Table

    from gnnperf.devices import list_devices

    known = list_devices()
    table = Table("device", "name", "fingerprint", "cores", box=None)
    shown = {"peak_gflops_fp32": "fp32 GFLOP/s", "bandwidth_gbps": "GB/s", "board_power_w": "W"}
    for heading in shown.values():
        table.add_column(heading, justify="right")
    for key, spec in known.items():
        numbers = (_marked(spec, field) for field in shown)
        table.add_row(key, spec.name, spec.fingerprint, str(spec.cores), *numbers)
    table.caption = "~ doubtful: gnnperf devices show says why"
    return Report({"devices": [_document(key, spec) for key, spec in known.items()]}, table)


@devices.command(cls=Verb)
@click.argument("device", default="host")
def show(device: str) -> Report:
    """Show one device: "host" (the default), a name of the catalog, or a YAML file."""
    from gnnperf.devices import load_device

    return _report(device, load_device(device))


@devices.command(cls=Verb)
@click.option("--refresh", is_flag=True, help="Measure again, even when this machine was measured before.")
def probe(refresh: bool) -> Report:
    """Measure this machine's peak FLOP rate and memory bandwidth (some seconds; kept in the cache).

    Of NVIDIA GPUs, where there are any, the properties are read from the driver, and where torch was built
    with CUDA, bandwidth (triad) and peak (fp32 product) are measured, every time.
    """
    from rich.console import Group

    from gnnperf.devices import find_gpus, probe

    spec = probe(refresh)
    if bandwidth := spec.provenance.get("bandwidth_gbps"):
        click.echo(
            f"the figures may be low: {bandwidth.doubtful}; on an idle machine they are measured again",
            err=True,
        )
    gpus, why_none = find_gpus()
    found = [(gpu, *_measured(gpu)) for gpu in gpus]
    host = _report("host", spec)
    documents = [
        {**_document(f"gpu {gpu.index}", gpu.spec), "driver": gpu.driver, "clock_mhz": gpu.clock_mhz,
         "measured": measured}
        for gpu, measured, _ in found
    ]  # fmt: skip
    views = [_gpu_view(document, remark) for document, (_, _, remark) in zip(documents, found, strict=True)]
    notes = [] if gpus else [f"no GPU: {why_none}"]
    return Report({**host.document, "gpus": documents}, Group(host.view, *views, *notes))


def _measured(gpu: FoundGpu) -> tuple[dict[str, float], str]:
    """What torch measures on a GPU, and why it measures nothing where it does not."""
    from gnnperf.devices import measure_gpu
    from gnnperf.errors import MeasureError

    try:
        return measure_gpu(gpu.index), ""
    except MeasureError as error:
        return {}, f"not measured: {error}"


def _gpu_view(document: Mapping[str, Any], remark: str) -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table("field", "value", box=None)
    for field, value in {**document, **document["measured"]}.items():
        if field not in ("provenance", "measured"):
            table.add_row(field, _cell(value))
    return Group("", table, *([remark] if remark else []))


def _report(key: str, spec: DeviceSpec) -> Report:
    from rich.table import Table

    document = _document(key, spec)
    table = Table("field", "value", box=None)
    if spec.provenance:
        table.add_column("source")
        table.add_column("doubtful")
    for field, value in document.items():
        known = spec.provenance.get(field)
        notes = (known.source or "", known.doubtful or "") if known else ()
        if field != "provenance":
            table.add_row(field, _cell(value), *notes)
    return Report(document, table)


def _document(key: str, spec: DeviceSpec) -> dict[str, Any]:
    notes = {field: asdict(known) for field, known in spec.provenance.items()}
    document = {"device": key, "fingerprint": spec.fingerprint, **spec.to_dict()}
    return {**document, "provenance": notes} if notes else document


def _marked(spec: DeviceSpec, field: str) -> str:
    """A value for the list, with a tilde where it is doubtful; CPUs are described without their power."""
    if spec.kind == "cpu" and field == "board_power_w":
        return ""
    known = spec.provenance.get(field)
    return f"~{_cell(getattr(spec, field))}" if known and known.doubtful else _cell(getattr(spec, field))


def _cell(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
