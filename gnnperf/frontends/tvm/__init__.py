"""TVM tensor programs: tasks with their nests, scheduled graphs; recipes as schedules, traces as recipes."""

from gnnperf.frontends.tvm.load import is_tvm_kernel, load_tasks, tasks_of
from gnnperf.frontends.tvm.recipes import Expressed, apply_recipe
from gnnperf.frontends.tvm.scheduled import scheduled_graph, scheduled_nest
from gnnperf.frontends.tvm.tasks import TvmTask
from gnnperf.frontends.tvm.trace_recipes import recipe_of_trace

__all__ = [
    "Expressed",
    "TvmTask",
    "apply_recipe",
    "is_tvm_kernel",
    "load_tasks",
    "recipe_of_trace",
    "scheduled_graph",
    "scheduled_nest",
    "tasks_of",
]
