"""Torch modules, as more than one frontend takes them."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from gnnperf.errors import InputError, first_line


def export_module(module: Any, inputs: Any, name: str) -> Any:
    """The `torch.export.ExportedProgram` of a `torch.nn.Module` with example inputs, a tuple. What is no
    tensor in it, a number or None, is a constant of the program.

    Raises InputError, with the name of the module, where inputs are missing or torch cannot export it.
    """
    import torch

    if not isinstance(inputs, tuple | list):
        raise InputError(
            f"kernel: expected example inputs beside the torch module {name}: "
            "give them as a tuple, inputs=(x,), or name a function of a file that returns (module, (x,))"
        )
    try:
        with warnings.catch_warnings(), quiet_torch():
            # Recurrent layers list their parameters a second time, which torch remarks on.
            warnings.filterwarnings("ignore", "The tensor attributes .*_flat_weights", UserWarning)
            return torch.export.export(*_of_tensors(module.eval(), tuple(inputs)))
    except Exception as error:  # torch and the module's code raise anything
        raise InputError(f"kernel: torch cannot export {name!r}: {first_line(error)}") from None


@contextlib.contextmanager
def quiet_torch() -> Iterator[None]:
    """Without what torch logs and prints of an error that it raises: backtraces and graphs."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(said := io.StringIO()), contextlib.redirect_stderr(said):
            yield
    finally:
        logging.disable(disabled)


def _of_tensors(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A module, and its inputs that are tensors; the others are bound."""
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    values, structure = tree_flatten(inputs)
    if all(isinstance(value, torch.Tensor) for value in values):
        return module, inputs

    class Bound(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: Any) -> Any:
            left = iter(tensors)
            given = [next(left) if isinstance(value, torch.Tensor) else value for value in values]
            return self.module(*tree_unflatten(given, structure))

    return Bound().eval(), tuple(value for value in values if isinstance(value, torch.Tensor))
