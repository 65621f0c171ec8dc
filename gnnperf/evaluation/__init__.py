"""Benchmarks behind `gnnperf eval`, and the metrics they report."""

from gnnperf.evaluation.benchmark import BenchmarkResult

__all__ = ["BenchmarkResult"]
