"""The retrieval head: how well will this schedule do on this program?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gnnperf.nn.scaling import Standardise


@dataclass(frozen=True)
class HeadConfig:
    """Hyperparameters of the retrieval head.

    Attributes:
        width: of the hidden layers that judge the graph.
        dropout: probability there, in training only.
        effect_width: of the hidden layers that judge the effects.
        effect_dropout: probability there.
    """

    width: int = 96
    dropout: float = 0.2
    effect_width: int = 128
    effect_dropout: float = 0.3


DEFAULT_HEAD = HeadConfig()


class RetrievalHead(nn.Module):
    """Predicts ln(efficiency) of a schedule on a program: 0 where it is the best one known.

    The mean of two judges, which err differently and are trained each on its own. The first knows the
    program's graph as the encoder sees it, and the schedule. Both are mapped to vectors; their inner product
    says whether they suit each other, a perceptron on their sum adds what an inner product cannot say. It
    works on the encoder's `fingerprint`, before the projection to the sphere: near programs like the same
    schedules, but how much each is worth on them is more than a direction can hold. The second judge is a
    perceptron on the schedule and the effects it would have on the program.

    Args:
        program_width: of the encoder's fingerprint.
        schedule_width: of a row of `gnnperf.schedules.recipe_features`.
        effect_width: of a row of `gnnperf.schedules.recipes.effects`.
        config: hyperparameters.
    """

    def __init__(
        self,
        program_width: int,
        schedule_width: int,
        effect_width: int,
        config: HeadConfig = DEFAULT_HEAD,
    ) -> None:
        super().__init__()
        width, dropout = config.width, config.dropout
        self.config = config
        self.schedule_scale = Standardise(schedule_width)
        self.effect_scale = Standardise(effect_width, limit=4.0)
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
        width, dropout = config.effect_width, config.effect_dropout
        self.effect = nn.Sequential(
            nn.Dropout(dropout / 3), nn.Linear(effect_width + schedule_width, width), nn.GELU(),
            nn.Dropout(dropout), nn.Linear(width, width), nn.GELU(),
            nn.Dropout(dropout), nn.Linear(width, 1),
        )  # fmt: skip

    def fit_scales(self, schedules: Tensor, effects: Tensor) -> None:
        """Take the input statistics of f32[s, schedule_width] and f32[m, effect_width]."""
        self.schedule_scale.fit(schedules)
        self.effect_scale.fit(effects)

    def forward(
        self, states: Tensor, schedules: Tensor, effects: Tensor, program: Tensor, schedule: Tensor
    ) -> Tensor:
        """Score m pairs.

        Args:
            states: f32[b, program_width], fingerprints of b programs.
            schedules: f32[s, schedule_width], features of s schedules.
            effects: f32[m, effect_width] of each pair, NaN where absent.
            program: i64[m], row of `states` of each pair.
            schedule: i64[m], row of `schedules` of each pair.

        Returns:
            f32[m], predicted ln(best runtime known / runtime), at most about 0.
        """
        return self.judgements(states, schedules, effects, program, schedule).mean(0)

    def judgements(
        self, states: Tensor, schedules: Tensor, effects: Tensor, program: Tensor, schedule: Tensor
    ) -> Tensor:
        """f32[2, m]: what each judge predicts; arguments as of `forward`."""
        schedules = self.schedule_scale(schedules)
        programs = self.program(states)
        wanted = self.match(programs).index_select(0, program)
        programs = programs.index_select(0, program)
        offered = self.schedule(schedules).index_select(0, schedule)
        suit = (wanted * offered).sum(1) / math.sqrt(offered.size(1))
        by_graph = suit + self.joint(programs + offered).squeeze(1)
        known = self.effect_scale(effects).nan_to_num()  # absent: as on average
        by_effects = self.effect(torch.cat([known, schedules.index_select(0, schedule)], 1)).squeeze(1)
        return torch.stack([by_graph, by_effects])
