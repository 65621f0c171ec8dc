"""A database for MetaSchedule that has an answer for workloads that were never tuned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnnperf.errors import GnnperfError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.program import TvmProgram
from gnnperf.retrieval.traces.candidates import TraceCandidate
from gnnperf.schedules.traces import program_key
from gnnperf.session import Session

import_tvm()

from tvm.ir.utils import derived_object  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402


@derived_object
class TransferDatabase(ms.database.PyDatabase):  # type: ignore[misc]
    """Records that were committed to it, and for any other workload a schedule by transfer: the traces of the
    nearest workloads in the store, their tiles decided anew, the best by the cost model. Nothing is measured.

    Args:
        folder: a bundle with a store; None for the released one.
        store: a schedule store of the user's own beside it.

    Example:
        with TransferDatabase(), target:
            module = relax.transform.MetaScheduleApplyDatabase()(module)
    """

    def __init__(self, folder: Path | None = None, store: str | None = None) -> None:
        super().__init__()
        self.memory = ms.database.MemoryDatabase()
        self.session = Session(folder, store or False)
        self._answers: dict[tuple[int, str], Any] = {}

    def has_workload(self, mod: Any) -> bool:
        return bool(self.memory.has_workload(mod))

    def commit_workload(self, mod: Any) -> Any:
        return self.memory.commit_workload(mod)

    def commit_tuning_record(self, record: Any) -> None:
        self.memory.commit_tuning_record(record)

    def get_top_k(self, workload: Any, top_k: int) -> Sequence[Any]:
        found: Sequence[Any] = self.memory.get_top_k(workload, top_k)
        return found

    def get_all_tuning_records(self) -> Sequence[Any]:
        found: Sequence[Any] = self.memory.get_all_tuning_records()
        return found

    def __len__(self) -> int:
        return len(self.memory)

    def query_tuning_record(self, mod: Any, target: Any, workload_name: str) -> Any:
        """A committed record, or one of a transferred schedule, whose run_secs are empty; None without."""
        known = self.memory.query_tuning_record(mod, target, workload_name)
        schedule = None if known is not None else self._transferred(mod, target, workload_name)
        if schedule is None:
            return known
        arguments = ms.arg_info.ArgInfo.from_entry_func(mod, True)
        return ms.database.TuningRecord(schedule.trace, ms.database.Workload(mod), None, target, arguments)

    def query_schedule(self, mod: Any, target: Any, workload_name: str) -> Any:
        """Of a committed record, or a transferred one; None without."""
        known = self.memory.query_schedule(mod, target, workload_name)
        return known if known is not None else self._transferred(mod, target, workload_name)

    def query_ir_module(self, mod: Any, target: Any, workload_name: str) -> Any:
        """The module that `query_schedule` makes; None without."""
        schedule = self.query_schedule(mod, target, workload_name)
        return None if schedule is None else schedule.mod

    def _transferred(self, mod: Any, target: Any, name: str) -> Any:
        if target.kind.name != "llvm":  # nothing that was tuned for it is in the store
            return None
        key = program_key(mod), str(target)
        if key not in self._answers:
            self._answers[key] = self._ask(mod, target, name)
        return self._answers[key]

    def _ask(self, mod: Any, target: Any, name: str) -> Any:
        program = TvmProgram(name, [TvmTask(name, mod)], target)
        try:
            queries = self.session.pipeline(program, None).ask()
        except GnnperfError:  # what has no graph has no neighbours
            return None
        found = queries[0].candidates if queries else []
        # A call of a library is no schedule: MetaSchedule has no record for one.
        return next((one.scheduled for one in found if isinstance(one, TraceCandidate)), None)
