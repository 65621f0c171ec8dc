"""Learning to rank scheduled tensor programs from a corpus of measured TVM schedules."""

from gnnperf.training.traces.corpus import (
    MeasuredSchedule,
    MeasuredWorkload,
    TensorCorpus,
    load_tensor_corpus,
)

__all__ = ["MeasuredSchedule", "MeasuredWorkload", "TensorCorpus", "load_tensor_corpus"]
