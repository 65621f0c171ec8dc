"""Predictions and proposals for GPUs that are not here, as the `Session` offers them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gnnperf.devices import DeviceSpec, load_device
from gnnperf.errors import GnnperfError, InputError, quoted
from gnnperf.frontends.base import kernel_type
from gnnperf.graph.vocabulary import check_precision

if TYPE_CHECKING:
    from gnnperf.frontends.gpu_kernels import Description
    from gnnperf.frontends.operators import CapturedModel, Operator
    from gnnperf.graph.workload import Workload
    from gnnperf.nn.demand import DemandBundle
    from gnnperf.nn.runtime import RuntimeHead
    from gnnperf.retrieval.check import TableCheck
    from gnnperf.retrieval.prediction import KernelPrediction
    from gnnperf.retrieval.tunable import ConfigurationProposal

NOT_MEASURED = "the kernel was not measured anywhere: physics, and what others needed"


class GpuModels(Protocol):
    """Trained models, loaded when they are first asked for: for operators, and for tunable kernels."""

    @property
    def runtime_head(self) -> RuntimeHead: ...
    @property
    def demand(self) -> DemandBundle: ...


@dataclass(frozen=True)
class OperatorForecast:
    """What is expected of operators that run one after another. predictions: by GPU, as it was named; see
    `KernelPrediction`. unknown, left_out: operators of PyTorch, counted; see `CapturedModel`."""

    kernel: str
    operators: Sequence[Operator]
    workloads: Sequence[Workload]
    unknown: Mapping[str, int]
    left_out: Mapping[str, int]
    predictions: Mapping[str, KernelPrediction]

    @property
    def runtime_s(self) -> Mapping[str, float | None]:
        """By GPU; None where nothing is said."""
        return {gpu: found.runtime_s for gpu, found in self.predictions.items()}


@dataclass(frozen=True)
class ConfigurationForecast:
    """What is expected of one configuration of a tunable kernel. predictions: by GPU, as it was named; see
    `KernelPrediction`. measured: whether the kernel was, on some GPU."""

    kernel: str
    description: Description
    configuration: Mapping[str, int]
    predictions: Mapping[str, KernelPrediction]
    measured: bool

    @property
    def runtime_s(self) -> Mapping[str, float | None]:
        """By GPU; None where nothing is said."""
        return {gpu: found.runtime_s for gpu, found in self.predictions.items()}

    @property
    def remarks(self) -> tuple[str, ...]:
        """In words, what is to be said on every GPU."""
        listed = self.description.parameters
        odd = {name: v for name, v in self.configuration.items() if v not in listed.get(name, [v])}
        said = [
            f"{name}={v} is none of the {len(listed[name])} values that the description lists"
            for name, v in odd.items()
        ]
        return (*(() if self.measured else (NOT_MEASURED,)), *said)


def predict(
    kernel: Any, gpus: Any, fused: bool, calibrate: Path | None, models: GpuModels,
    dtype: str | None, inputs: Any,
) -> OperatorForecast | ConfigurationForecast:  # fmt: skip
    """See `Session.predict`."""
    from gnnperf.frontends.gpu_kernels import is_tunable

    several = isinstance(gpus, Iterable) and not isinstance(gpus, str)
    devices = {gpu: _device(gpu) for gpu in (gpus if several else [gpus])}
    if not devices:
        raise InputError("expected at least one --gpu; `gnnperf devices list` shows those that are known")
    if isinstance(kernel, str) and is_tunable(kernel):
        if fused:
            raise InputError("--fused is for models; a tunable kernel is one launch")
        if dtype is not None:
            raise InputError("--dtype is for operators; a tunable kernel's description says its buffers'")
        if inputs is not None:
            raise InputError("inputs are for torch modules; a tunable kernel's description says its sizes")
        return _configuration(kernel, devices, calibrate, models.demand)
    return _operators(_captured(kernel, fused, inputs), devices, calibrate, models.runtime_head, dtype)


def _device(gpu: Any) -> DeviceSpec:
    """As `load_device`, of what may be no text. Raises InputError."""
    if not isinstance(gpu, str | Path):
        raise InputError(
            f"expected the name of a GPU, or a YAML file that describes one, got {quoted(gpu)}; `gnnperf "
            "devices list` shows those that are known"
        )
    return load_device(str(gpu))


def _operators(
    model: CapturedModel, devices: Mapping[str, DeviceSpec], calibrate: Path | None, head: RuntimeHead,
    dtype: str | None,
) -> OperatorForecast:  # fmt: skip
    from gnnperf.nn.runtime.columns import UnknownPeakError
    from gnnperf.retrieval.prediction import KernelPrediction, calibrated_heads, predict_kernel

    operators = list(model.operators)
    if dtype is not None:
        check_precision(dtype, "dtype")
        operators = [replace(o, dtype=dtype) if o.dtype == "fp32" else o for o in operators]
    workloads = [operator.workload() for operator in operators]
    heads = calibrated_heads(head, calibrate, devices, devices)
    found, refused = dict[str, KernelPrediction](), list[UnknownPeakError]()
    for gpu, device in devices.items():
        try:
            found[gpu] = predict_kernel(heads[gpu], workloads, device)
        except UnknownPeakError as error:  # of the other GPUs something may be said
            found[gpu] = KernelPrediction(device, objection=str(error))
            refused.append(error)
    if len(refused) == len(found):
        raise refused[0]
    _require_one(found)
    return OperatorForecast(model.name, operators, workloads, model.unknown, model.left_out, found)


def _captured(kernel: Any, fused: bool, inputs: Any) -> CapturedModel:
    """The operators that a kernel launches, and what of it is not known."""
    from gnnperf.frontends.operators import CapturedModel, is_operator, load_model, parse_operators
    from gnnperf.frontends.operators.torch_models import capture
    from gnnperf.frontends.torch_modules import export_module

    written, module = isinstance(kernel, str | Path), hasattr(kernel, "forward")
    if inputs is not None and not module:
        raise InputError("inputs: expected none; they go with a torch module")
    if written and is_operator(str(kernel)):
        if fused:
            raise InputError("--fused is for models; of attention, give fused_attention:...")
        return CapturedModel(str(kernel), tuple(parse_operators(str(kernel))))
    if written:
        model = load_model(str(kernel))
    elif hasattr(kernel, "graph_signature"):
        model = capture(kernel, "program")
    elif module:
        name = type(kernel).__name__
        model = capture(export_module(kernel, inputs, name), name)
    else:
        raise InputError(
            "kernel: expected a text, a torch module with inputs or a torch ExportedProgram, "
            f"got {kernel_type(kernel)}"
        )
    if not model.operators:
        raise GnnperfError(f"{model.name}: it launches nothing that is known")
    return model.fused() if fused else model


def _configuration(
    kernel: str, devices: Mapping[str, DeviceSpec], calibrate: Path | None, bundle: DemandBundle
) -> ConfigurationForecast:
    from gnnperf.frontends.gpu_kernels import check_gpu, parse_configuration
    from gnnperf.retrieval.prediction import no_runs
    from gnnperf.retrieval.tunable import predict_configuration, read_runs

    description, given = parse_configuration(kernel)
    for device in devices.values():
        check_gpu(device)
    runs = {name: read_runs(calibrate, device, devices) for name, device in devices.items()}
    if calibrate is not None and not any(mine.configurations for mine in runs.values()):
        raise no_runs(calibrate, devices)
    found = {
        name: predict_configuration(description, given, device, bundle, runs[name])
        for name, device in devices.items()
    }
    _require_one(found)
    measured = bundle.demands(description)[0].parameters is not None
    return ConfigurationForecast(kernel, description, given, found, measured)


def _require_one(found: Mapping[str, KernelPrediction]) -> None:
    """Raises GnnperfError where nothing is said of any GPU."""
    if all(prediction.objection for prediction in found.values()):
        raise GnnperfError(f"no prediction: {next(iter(found.values())).objection}")


def propose_configurations(
    kernel: str,
    gpu: str,
    k: int,
    sizes: Mapping[str, float],
    data: str | Path | None,
    ignored: Collection[str],
    bundle: DemandBundle,
) -> ConfigurationProposal:
    """See `Session.propose`."""
    from gnnperf.frontends.gpu_kernels import check_gpu, find_description
    from gnnperf.frontends.gpu_kernels.tables import data_or_none, load_tables
    from gnnperf.retrieval.tunable import propose

    description, device = find_description(kernel), _device(gpu)
    check_gpu(device)
    path = data_or_none(None if data is None else Path(data))
    if ignored and path is None:
        raise InputError("--ignore is for measurements of your own; give --data, or leave it out")
    measured = (
        bundle.tables(description)
        if path is None
        else load_tables(path, {description.name: description}, ignored)
    )
    return propose(description, device, bundle, k, measured, sizes)


def check_description(
    kernel: str, table: str | Path, k: int, ignored: Collection[str], bundle: DemandBundle
) -> list[TableCheck]:
    """See `Session.check_description`."""
    from gnnperf.frontends.gpu_kernels import check_gpu, find_description
    from gnnperf.frontends.gpu_kernels.tables import data_path, load_tables
    from gnnperf.retrieval.check import check_tables

    description, path = find_description(kernel), data_path(Path(table))
    tables = load_tables(path, {description.name: description}, ignored)
    if not tables:
        raise InputError(f"{path}: expected measured rows of the kernel {description.name}, got none")
    for one in tables:
        check_gpu(one.device)
    return check_tables(tables, bundle, k)
