"""Torch modules, as more than one frontend takes them."""

from __future__ import annotations

import warnings
from typing import Any

from gnnperf.errors import InputError, first_line


def export_module(module: Any, inputs: Any, name: str) -> Any:
    """The `torch.export.ExportedProgram` of a `torch.nn.Module` with example inputs, a tuple.

    Raises InputError, with the name of the module, where inputs are missing or torch cannot export it.
    """
    import torch

    if not isinstance(inputs, tuple | list):
        raise InputError(
            f"kernel: expected example inputs beside the torch module {name}: "
            "give them as a tuple, inputs=(x,)"
        )
    try:
        with warnings.catch_warnings():
            # Recurrent layers list their parameters a second time, which torch remarks on.
            warnings.filterwarnings("ignore", "The tensor attributes .*_flat_weights", UserWarning)
            return torch.export.export(module.eval(), tuple(inputs))
    except Exception as error:  # torch and the module's code raise anything
        raise InputError(f"kernel: torch cannot export {name!r}: {first_line(error)}") from None
