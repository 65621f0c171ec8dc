"""A DaCe pass that tunes a whole SDFG by transfer."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dace.sdfg import SDFG
from dace.transformation import pass_pipeline

from gnnperf.errors import InputError, MeasureError
from gnnperf.frontends.dace.loader import SDFG as SAVED
from gnnperf.session import Retrieval, Session


class TransferTune(pass_pipeline.Pass):  # type: ignore[misc]
    """Tune an SDFG in place with the schedules of nests like its own, as `gnnperf retrieve` does.

    Candidates are measured on this machine, so applying it takes seconds to minutes. The SDFG becomes a
    program for the sizes given: symbols with values are no arguments of it any more. It is verified, and
    never slower than `auto_optimize` beyond noise: where nothing wins, it is left as it was.

    Args:
        k: candidates measured per nest.
        symbols: values of the SDFG's symbols, all of them.
        inputs: arrays and scalars by argument to tune with; what is missing is made up. Needed where loops
            depend on data.
        checkpoint: a bundle; None for the released one.
        store: the user's store, a folder or URI; None for the default one.
        remember: False searches the released store alone and remembers nothing.

    Example:
        TransferTune(k=3, symbols={"N": 512}).apply_pass(sdfg, {})
    """

    CATEGORY = "Optimization"

    def __init__(
        self,
        k: int = 3,
        symbols: Mapping[str, int] | None = None,
        inputs: Mapping[str, Any] | None = None,
        checkpoint: Path | None = None,
        store: str | None = None,
        remember: bool = True,
    ) -> None:
        super().__init__()
        if k < 1:
            raise InputError(f"TransferTune: expected k of at least 1, got {k}")
        self.symbols, self.inputs = dict(symbols or {}), dict(inputs or {})
        self.k, self.session = k, Session(checkpoint, store if remember else False)

    def modifies(self) -> pass_pipeline.Modifies:
        return pass_pipeline.Modifies.Everything

    def should_reapply(self, modified: pass_pipeline.Modifies) -> bool:
        return False  # measuring again would find the same

    def apply_pass(self, sdfg: SDFG, pipeline_results: Mapping[str, Any]) -> Retrieval | None:
        """Tune `sdfg` in place. Returns what was found, or None where the program was left as it was.

        Raises GnnperfError: no value for a symbol, or the program cannot be tuned or measured.
        """
        known = {*self.symbols, *self.inputs, *sdfg.constants, *sdfg.arrays}
        for name in self.inputs.keys() & sdfg.arrays.keys():
            known |= {str(symbol) for symbol in sdfg.arrays[name].free_symbols}
        if missing := sorted({str(symbol) for symbol in sdfg.free_symbols} - known):
            what = f"no value for the symbol {missing[0]}"
            raise InputError(f"TransferTune: {what}; give symbols={{...}} or inputs")
        found = self.session.retrieve(sdfg, k=self.k, sizes=self.symbols, inputs=self.inputs)
        if found.failed:
            raise MeasureError(found.note)
        if found.kept_baseline:
            return None
        with tempfile.TemporaryDirectory(prefix="gnnperf-tuned-") as scratch:
            _become(sdfg, SDFG.from_file(str(found.save(scratch) / SAVED)))
        return found

    def report(self, pass_retval: Retrieval) -> str:
        return f"{pass_retval.kernel}: {pass_retval.speedup:.2f}x over {pass_retval.baseline_name}"


def _become(sdfg: SDFG, other: SDFG) -> None:
    """Turn `sdfg` into a copy of `other`, under its own name: DaCe has no such operation."""
    name, other = sdfg.name, copy.deepcopy(other)
    vars(sdfg).clear()
    vars(sdfg).update(vars(other))
    sdfg.name = name
    for region in other.all_control_flow_regions():
        if region is not other and region.sdfg is other:
            region.sdfg = sdfg
    for block in other.nodes():
        block.parent_graph = sdfg
    for block in sdfg.all_control_flow_blocks():
        if block.sdfg is other:
            block.sdfg = sdfg
    for state in sdfg.states():
        for node in state.nodes():
            if getattr(node, "sdfg", None) is not None:
                node.sdfg.parent_sdfg = sdfg
    sdfg.reset_cfg_list()
