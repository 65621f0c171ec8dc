"""The retrieval head: how well will this schedule do on this program?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from gnnperf.nn.scaling import Standardise


@dataclass(frozen=True)
class HeadConfig:
    """Hyperparameters of the retrieval head.

    Attributes:
        width: of the hidden layers.
        dropout: probability, in training only.
    """

    width: int = 96
    dropout: float = 0.2


DEFAULT_HEAD = HeadConfig()


class RetrievalHead(nn.Module):
    """Predicts ln(efficiency) of a schedule on a program: 0 where it is the best one known.

    Program and schedule are each mapped to a vector. Their inner product says whether they suit each
    other; a perceptron on their sum adds what an inner product cannot say. It works on the encoder's
    `fingerprint`, before the projection to the sphere: near programs like the same schedules, but how
    much each is worth on them is more than a direction can hold.

    Args:
        program_width: of the encoder's fingerprint.
        schedule_width: of a row of `gnnperf.schedules.recipe_features`.
        config: hyperparameters.
    """

    def __init__(self, program_width: int, schedule_width: int, config: HeadConfig = DEFAULT_HEAD) -> None:
        super().__init__()
        width, dropout = config.width, config.dropout
        self.config = config
        self.scale = Standardise(schedule_width)
        self.program = nn.Sequential(
            nn.BatchNorm1d(program_width, affine=False), nn.Dropout(dropout), nn.Linear(program_width, width)
        )
        self.schedule = nn.Sequential(
            nn.Linear(schedule_width, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width)
        )
        self.match = nn.Linear(width, width, bias=False)
        self.joint = nn.Sequential(
            nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )

    def forward(self, states: Tensor, schedules: Tensor, program: Tensor, schedule: Tensor) -> Tensor:
        """Score m pairs.

        Args:
            states: f32[b, program_width], fingerprints of b programs.
            schedules: f32[s, schedule_width], features of s schedules.
            program: i64[m], row of `states` of each pair.
            schedule: i64[m], row of `schedules` of each pair.

        Returns:
            f32[m], predicted ln(best runtime known / runtime), at most about 0.
        """
        programs = self.program(states)
        wanted = self.match(programs).index_select(0, program)
        programs = programs.index_select(0, program)
        offered = self.schedule(self.scale(schedules)).index_select(0, schedule)
        suit = (wanted * offered).sum(1) / math.sqrt(offered.size(1))
        return suit + self.joint(programs + offered).squeeze(1)
