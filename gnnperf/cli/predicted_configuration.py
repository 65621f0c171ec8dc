"""What `gnnperf predict` says of a configuration of a tunable kernel."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gnnperf.cli.output import Report, human_time
from gnnperf.cli.pages import NOT_MEASURED, page_of_configuration

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec
    from gnnperf.retrieval.gpu import ConfigurationForecast
    from gnnperf.retrieval.tunable import Prediction


def configuration_report(found: ConfigurationForecast) -> Report:
    """Runtimes and intervals, by GPU."""
    rows = [(name, found.devices[name], one) for name, one in found.predictions.items()]
    document = {
        "kernel": found.kernel,
        "measured_elsewhere": found.measured,
        "predictions": [_document(name, device, one) for name, device, one in rows],
    }
    return Report(document, _view(rows, found.measured), page=partial(page_of_configuration, found))


def _document(name: str, device: DeviceSpec, found: Prediction) -> dict[str, Any]:
    document: dict[str, Any] = {"gpu": name, "device": device.name}
    if not found.fits[0]:
        return {**document, "objection": _too_large(device)}
    intervals = {f"{level}%": [float(lo[0]), float(hi[0])] for level, (lo, hi) in found.interval_ms.items()}
    return {
        **document, "objection": None, "runtime_ms": float(found.runtime_ms[0]), "intervals_ms": intervals
    }  # fmt: skip


def _view(rows: list[tuple[str, DeviceSpec, Prediction]], measured: bool) -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table("GPU", box=None)
    for heading in ("runtime", "80% interval", "95% interval"):
        table.add_column(heading, justify="right")
    remarks = [] if measured else [NOT_MEASURED]
    for name, device, found in rows:
        if not found.fits[0]:
            table.add_row(name, "-", "-", "-")
            remarks.append(f"{name}: no prediction: {_too_large(device)}")
            continue
        spans = (found.interval_ms[level] for level in ("80", "95"))
        cells = [f"{human_time(lo[0] * 1e-3)} to {human_time(hi[0] * 1e-3)}" for lo, hi in spans]
        table.add_row(name, human_time(found.runtime_ms[0] * 1e-3), *cells)
    return Group(table, *remarks)


def _too_large(device: DeviceSpec) -> str:
    from gnnperf.retrieval.gpu import too_large

    return too_large(device)
