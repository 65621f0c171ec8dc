"""Measuring schedules of nests: trials, search, and the collection of corpora."""

from gnnperf.tuning.config import CollectConfig
from gnnperf.tuning.corpus_log import CorpusLog
from gnnperf.tuning.search import SearchBudget, SearchResult, default_starts, search
from gnnperf.tuning.trials import Bench, NestCase, Trial, source_of

__all__ = [
    "Bench",
    "CollectConfig",
    "CorpusLog",
    "NestCase",
    "SearchBudget",
    "SearchResult",
    "Trial",
    "default_starts",
    "search",
    "source_of",
]
