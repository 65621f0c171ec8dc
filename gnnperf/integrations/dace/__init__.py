"""In DaCe: a pass that tunes an SDFG by transfer, and a decorator that tunes a program when it is called."""

from gnnperf.integrations.dace.program import TunedProgram, tuned
from gnnperf.integrations.dace.transfer_tune import TransferTune

__all__ = ["TransferTune", "TunedProgram", "tuned"]
