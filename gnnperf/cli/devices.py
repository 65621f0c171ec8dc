"""`gnnperf devices`: the catalog and this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec


@click.group()
def devices() -> None:
    """Describe this machine and the devices gnnperf knows."""


@devices.command("list", cls=Verb)
def list_() -> Report:
    """List this host and the catalog."""
    from rich.table import Table

    from gnnperf.devices import list_devices

    known = list_devices()
    table = Table("device", "name", "fingerprint", "threads", "fp32 GFLOP/s", "GB/s", box=None)
    for key, spec in known.items():
        row = (spec.name, spec.fingerprint, spec.threads, spec.peak_gflops_fp32, spec.bandwidth_gbps)
        table.add_row(key, *map(_cell, row))
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
    """Measure this machine's peak FLOP rate and memory bandwidth (some seconds; kept in the cache)."""
    from gnnperf.devices import describe_host, probe

    busy, threads = os.getloadavg()[0], describe_host().threads
    spec = probe(refresh)
    if busy > threads / 2:
        click.echo(
            f"other programs kept {busy:.1f} of {threads} threads busy: the figures may be low; "
            "use --refresh when this machine is idle",
            err=True,
        )
    return _report("host", spec)


def _report(key: str, spec: DeviceSpec) -> Report:
    from rich.table import Table

    document = _document(key, spec)
    table = Table("field", "value", box=None)
    for field, value in document.items():
        table.add_row(field, _cell(value))
    return Report(document, table)


def _document(key: str, spec: DeviceSpec) -> dict[str, Any]:
    return {"device": key, "fingerprint": spec.fingerprint, **spec.to_dict()}


def _cell(value: Any) -> str:
    if value is None:
        return "?"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
