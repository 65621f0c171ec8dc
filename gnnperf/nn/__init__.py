"""Neural networks: the encoder of program graphs, its loss, and the bundle it is shipped in."""

from __future__ import annotations

from gnnperf.nn.attention import AttentionReadout, segment_softmax, segment_sum
from gnnperf.nn.bundle import Bundle, BundleMetadata, encoder_id, load_bundle, save_bundle
from gnnperf.nn.contrastive import REGRET_CAP, ContrastiveLoss
from gnnperf.nn.efficiency_loss import EfficiencyLoss
from gnnperf.nn.encoder import Encoder, EncoderConfig
from gnnperf.nn.head import HeadConfig, RetrievalHead
from gnnperf.nn.message_passing import MessagePassingLayer, TypedAttention
from gnnperf.nn.profile import PROFILE_FIELDS, ProfileEncoder, profile_row
from gnnperf.nn.scaling import Standardise

__all__ = [
    "PROFILE_FIELDS",
    "REGRET_CAP",
    "AttentionReadout",
    "Bundle",
    "BundleMetadata",
    "ContrastiveLoss",
    "EfficiencyLoss",
    "Encoder",
    "EncoderConfig",
    "HeadConfig",
    "MessagePassingLayer",
    "ProfileEncoder",
    "RetrievalHead",
    "Standardise",
    "TypedAttention",
    "encoder_id",
    "load_bundle",
    "profile_row",
    "save_bundle",
    "segment_softmax",
    "segment_sum",
]
