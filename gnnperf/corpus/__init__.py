"""Corpora of measured schedules: one record format, one log, one reader, and what collects them."""

from gnnperf.corpus.config import load_config
from gnnperf.corpus.reader import MeasuredTasks, read_corpus
from gnnperf.corpus.record import CorpusRecord, CorpusTask

__all__ = ["CorpusRecord", "CorpusTask", "MeasuredTasks", "load_config", "read_corpus"]
