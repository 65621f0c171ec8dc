"""`gnnperf eval ablation`: the released way to rank schedules beside the same without one part.

Replayed, candidates are those that the corpus has measured. Measured, every contender proposes what it likes
of all that is known, held-out nest by held-out nest (`propose`), all of it is measured (`measure`), and the
table is made of that. The other models have benchmarks of their own, from whose documents the table takes
rows (`beside`).
"""

from gnnperf.evaluation.ablation.beside import add_beside, read_beside
from gnnperf.evaluation.ablation.study import (
    Measuring,
    evaluate_ablation,
    measure_ablation,
    recorded_ablation,
)
from gnnperf.evaluation.ablation.table import POLICIES

__all__ = [
    "POLICIES",
    "Measuring",
    "add_beside",
    "evaluate_ablation",
    "measure_ablation",
    "read_beside",
    "recorded_ablation",
]
