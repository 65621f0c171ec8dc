"""`gnnperf eval ablation`: the released way to rank schedules beside the same without one part.

Replayed, candidates are those that the corpus has measured. Measured, every contender proposes what it likes
of all that is known, held-out nest by held-out nest (`propose`), all of it is measured (`measure`), and the
table is made of that.
"""

from gnnperf.evaluation.ablation.study import Measuring, evaluate_ablation, measure_ablation
from gnnperf.evaluation.ablation.table import POLICIES

__all__ = ["POLICIES", "Measuring", "evaluate_ablation", "measure_ablation"]
