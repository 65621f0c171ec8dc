"""What the pass and the decorator share: the main job on an SDFG object, without a command line."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.devices import describe_host
from gnnperf.frontends.dace import DaceKernel, kernel_of
from gnnperf.measure import Compiler, Runner
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval import Calibration, Retrieval
from gnnperf.retrieval.output import baseline_sdfg, write_output
from gnnperf.retrieval.records import remember
from gnnperf.retrieval.stores import open_own
from gnnperf.retrieval.transfer import Options, Transfer
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store

LOG = logging.getLogger("gnnperf")


@dataclass(frozen=True)
class Tuning:
    """How to tune. k: candidates measured per nest. checkpoint: a bundle; None for the released one. store:
    the user's own, as `--store` of `gnnperf retrieve`; remember: whether it is read and written at all."""

    k: int = 3
    checkpoint: Path | None = None
    store: str | None = None
    remember: bool = True

    def run(
        self,
        sdfg: Any,
        symbols: Mapping[str, float],
        given: Mapping[str, Any],
        name: str | None = None,
        output: Path | None = None,
    ) -> Tuned:
        """Tune for these sizes and inputs; the SDFG is not changed. Raises GnnperfError.

        given: arrays and scalars by argument; what is missing is made up. output: a folder for what
        `gnnperf retrieve --output` writes.
        """
        kernel = kernel_of(sdfg, symbols, given, name=name)
        folder = self.checkpoint or shipped_bundle()
        bundle = load_checkpoint(folder, Bundle)
        stores = [Store.open(folder / "store")]
        if self.remember:
            stores.append(open_own(self.store, bundle, LOG.warning))
        transfer = Transfer(
            kernel, bundle, stores, describe_host(), Calibration.of(bundle), Options(k=self.k), LOG.info
        )
        with Compiler() as compiler, Runner() as runner:
            report, tuned, queries = transfer.run(compiler, runner)
            if self.remember:
                remember(stores[-1], queries, kernel.name, bundle, transfer.device)
            if output is not None:
                best = tuned if tuned is not None else baseline_sdfg(kernel, report.baseline_name)
                text = json.dumps(report.to_dict(), default=dataclasses.asdict)
                write_output(output, kernel, best, text, compiler)
        return Tuned(kernel, report, tuned)


@dataclass(frozen=True)
class Tuned:
    """sdfg: the tuned program for the sizes it was tuned for; None where the baseline was kept."""

    kernel: DaceKernel
    report: Retrieval
    sdfg: Any
