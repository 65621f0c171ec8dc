"""Packing: schedules sampled and built for a GPU that is not here, to be measured where it is."""

from gnnperf.tuning.packs.config import PackConfig
from gnnperf.tuning.packs.writer import PackWriter

__all__ = ["PackConfig", "PackWriter"]
