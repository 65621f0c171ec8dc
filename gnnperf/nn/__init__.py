"""Neural networks: the encoder of program graphs, its heads and losses, and the format of checkpoints."""

from __future__ import annotations

from gnnperf.nn.bundle import Bundle, encoder_id
from gnnperf.nn.checkpoint import ModelProvenance, load_checkpoint, save_checkpoint
from gnnperf.nn.contrastive import REGRET_CAP, ContrastiveLoss
from gnnperf.nn.efficiency_loss import EfficiencyLoss
from gnnperf.nn.encoder import Encoder, EncoderConfig
from gnnperf.nn.head import HeadConfig, ScheduleHead
from gnnperf.nn.rank_correlation import RankCorrelationLoss
from gnnperf.nn.scaling import Standardise
from gnnperf.nn.scheduled import ScheduledProgram, collate_programs, scheduled_programs

__all__ = [
    "REGRET_CAP",
    "Bundle",
    "ContrastiveLoss",
    "EfficiencyLoss",
    "Encoder",
    "EncoderConfig",
    "HeadConfig",
    "ModelProvenance",
    "RankCorrelationLoss",
    "ScheduleHead",
    "ScheduledProgram",
    "Standardise",
    "collate_programs",
    "encoder_id",
    "load_checkpoint",
    "save_checkpoint",
    "scheduled_programs",
]
