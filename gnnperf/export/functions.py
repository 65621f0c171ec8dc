"""What an artefact computes: named functions of plain tensors, with shapes, units and meanings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gnnperf.errors import InputError

Call = Callable[[str, Sequence[Tensor]], Tensor | Sequence[Tensor]]
"""What a loaded artefact gives: it calls a function by its name. A function gives several tensors, or one."""

DTYPES = {"int64": torch.int64, "float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class TensorSpec:
    """One input or output.

    shape: sizes; a name ("n") stands for any size, the same wherever the name occurs in a function, and
    "b+1" for one more. columns: what the last dimension holds, where its columns have names.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    unit: str
    meaning: str
    columns: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {**asdict(self), "shape": list(self.shape), "columns": list(self.columns)}


@dataclass(frozen=True)
class Function:
    """One function of an artefact.

    module: what computes it; takes the inputs in order and returns the only output, or a tuple of several.
    example: inputs that it is traced with. traced: it is traced rather than scripted, because its formulas
    read mappings of columns or constants of Python modules; it has no branch that depends on values or sizes.
    """

    name: str
    module: nn.Module
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    example: tuple[Tensor, ...] = field(repr=False)
    traced: bool = False

    def to_dict(self) -> dict[str, Any]:
        """What metadata says of it."""
        return {"inputs": [s.to_dict() for s in self.inputs], "outputs": [s.to_dict() for s in self.outputs]}


def check_tensors(
    where: str, tensors: Sequence[Tensor], specs: Sequence[dict[str, Any]], sizes: dict[str, int]
) -> None:
    """Compare tensors with their specs in JSON form; `sizes`: of the names met, which is added to.

    Raises InputError: another number of tensors, another type or shape (got / expected).
    """
    if len(tensors) != len(specs):
        names = ", ".join(spec["name"] for spec in specs)
        raise InputError(f"{where}: expected {len(specs)} tensors ({names}), got {len(tensors)}")
    for tensor, spec in zip(tensors, specs, strict=True):
        shape = tuple(spec["shape"])
        fits = tensor.dim() == len(shape) and all(
            _fits(got, wanted, sizes) for got, wanted in zip(tensor.shape, shape, strict=True)
        )
        if tensor.dtype != DTYPES[spec["dtype"]] or not fits:
            got = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
            names = ", ".join(f"{k}={v}" for k, v in sizes.items())
            wanted = f"{spec['dtype']}[{', '.join(map(str, shape))}]" + (f" with {names}" if names else "")
            raise InputError(f"{where}: {spec['name']}: expected {wanted}, got {got}")


def _fits(got: int, wanted: int | str, sizes: dict[str, int]) -> bool:
    if isinstance(wanted, int):
        return got == wanted
    name, _, more = wanted.partition("+")
    return sizes.setdefault(name, got - int(more or 0)) == got - int(more or 0)
