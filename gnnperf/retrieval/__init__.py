"""Retrieval: neighbours of a nest, the schedules worth trying, and the transfer loop."""

from gnnperf.retrieval.neighbours import Calibration, nearest
from gnnperf.retrieval.ranking import Candidate, rank
from gnnperf.retrieval.report import NestReport, Retrieval, Timing, Tried

__all__ = ["Calibration", "Candidate", "NestReport", "Retrieval", "Timing", "Tried", "nearest", "rank"]
