"""`gnnperf predict KERNEL --gpu NAME...` where KERNEL is a configuration of a tunable kernel."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.cli.configurations import TUNABLE
from gnnperf.cli.output import Report, human_time
from gnnperf.cli.pages import NOT_MEASURED, page_of_configuration, too_large
from gnnperf.errors import GnnperfError
from gnnperf.shipped import shipped

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec
    from gnnperf.retrieval.tunable import Prediction


def predict_configuration(kernel: str, gpus: tuple[str, ...], calibrate: Path | None) -> Report:
    """What `gnnperf predict` does for tunable kernels. Raises InputError."""
    from gnnperf.devices import load_device
    from gnnperf.frontends.gpu_kernels import check_gpu, parse_configuration
    from gnnperf.nn import load_checkpoint
    from gnnperf.nn.demand import DemandBundle
    from gnnperf.retrieval.tunable import predict_configurations, predict_from_runs, read_runs

    description, given = parse_configuration(kernel)
    devices = {name: load_device(name) for name in gpus}
    bundle = load_checkpoint(shipped(TUNABLE), DemandBundle)
    rows = []
    for name, device in devices.items():
        check_gpu(device)
        if calibrate is None:
            found = predict_configurations(description, [given], device, bundle)
        else:
            runs = read_runs(calibrate, device, devices)
            found = predict_from_runs(description, [given], device, bundle, runs)
        rows.append((name, device, found))
    if not any(found.fits[0] for _, _, found in rows):
        raise GnnperfError(f"no prediction: {too_large(rows[0][1])}")
    measured = bundle.demands(description)[0].parameters is not None
    document = {
        "kernel": kernel,
        "measured_elsewhere": measured,
        "predictions": [_document(name, device, found) for name, device, found in rows],
    }
    page = partial(page_of_configuration, kernel, description, given, rows, measured)
    return Report(document, _view(rows, measured), page=page)


def _document(name: str, device: DeviceSpec, found: Prediction) -> dict[str, Any]:
    document: dict[str, Any] = {"gpu": name, "device": device.name}
    if not found.fits[0]:
        return {**document, "objection": too_large(device)}
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
            remarks.append(f"{name}: no prediction: {too_large(device)}")
            continue
        spans = (found.interval_ms[level] for level in ("80", "95"))
        cells = [f"{human_time(lo[0] * 1e-3)} to {human_time(hi[0] * 1e-3)}" for lo, hi in spans]
        table.add_row(name, human_time(found.runtime_ms[0] * 1e-3), *cells)
    return Group(table, *remarks)
