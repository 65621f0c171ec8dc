"""Retrieval: neighbours of a task, the schedules worth trying, and the pipeline that tries them."""

from gnnperf.retrieval.neighbours import nearest
from gnnperf.retrieval.pipeline import Options, Pipeline
from gnnperf.retrieval.ranking import RecipeCandidate, rank
from gnnperf.retrieval.report import NestReport, RetrievalReport, TriedReport

__all__ = [
    "NestReport",
    "Options",
    "Pipeline",
    "RecipeCandidate",
    "RetrievalReport",
    "TriedReport",
    "nearest",
    "rank",
]
