"""Learning to rank scheduled tensor programs from a corpus of measured TVM schedules."""

from gnnperf.training.traces.corpus import load_tensor_corpus

__all__ = ["load_tensor_corpus"]
