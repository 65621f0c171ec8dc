"""TVM tensor programs: tasks with their nests, scheduled graphs; recipes as schedules."""

from gnnperf.frontends.tvm.load import is_tvm_kernel, load_tasks, tasks_of
from gnnperf.frontends.tvm.recipes import apply_recipe
from gnnperf.frontends.tvm.scheduled import scheduled_graph, scheduled_nest
from gnnperf.frontends.tvm.tasks import TvmTask

__all__ = [
    "TvmTask",
    "apply_recipe",
    "is_tvm_kernel",
    "load_tasks",
    "scheduled_graph",
    "scheduled_nest",
    "tasks_of",
]
