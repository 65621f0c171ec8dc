"""TVM tensor programs: tasks with their nests, scheduled graphs, traces and their transfer, recipes."""

from gnnperf.frontends.tvm.load import is_tvm_kernel, load_tasks, tasks_of
from gnnperf.frontends.tvm.recipes import Expressed, apply_recipe
from gnnperf.frontends.tvm.roles import Roles, roles_of
from gnnperf.frontends.tvm.scheduled import scheduled_graph, scheduled_nest
from gnnperf.frontends.tvm.tasks import TvmTask, program_key
from gnnperf.frontends.tvm.trace_recipes import recipe_of_trace
from gnnperf.frontends.tvm.traces import TraceDocument, document_of_json, replay, trace_document
from gnnperf.frontends.tvm.transfer import Proposal, other_tiles, transfer

__all__ = [
    "Expressed",
    "Proposal",
    "Roles",
    "TraceDocument",
    "TvmTask",
    "apply_recipe",
    "document_of_json",
    "is_tvm_kernel",
    "load_tasks",
    "other_tiles",
    "program_key",
    "recipe_of_trace",
    "replay",
    "roles_of",
    "scheduled_graph",
    "scheduled_nest",
    "tasks_of",
    "trace_document",
    "transfer",
]
