"""Case studies: kernels of one kind, tuned and timed side by side with what their users would use instead."""

from gnnperf.evaluation.cases.row_log import RowLog
from gnnperf.evaluation.cases.study import CaseResult, Released, describe_setup, run_case, summarise
from gnnperf.evaluation.cases.suites import SUITES, Case, Suite
from gnnperf.measure.competitors import Effort, PythonFunction, measure_side_by_side
from gnnperf.measure.problem import Problem

__all__ = [
    "SUITES",
    "Case",
    "CaseResult",
    "Effort",
    "Problem",
    "PythonFunction",
    "Released",
    "RowLog",
    "Suite",
    "describe_setup",
    "measure_side_by_side",
    "run_case",
    "summarise",
]
