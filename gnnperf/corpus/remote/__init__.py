"""Packing: schedules sampled and built for a GPU that is not here, to be measured where it is."""

from gnnperf.corpus.remote.writer import PackWriter

__all__ = ["PackWriter"]
