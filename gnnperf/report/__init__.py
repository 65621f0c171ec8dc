"""What the verbs found, as HTML pages that need no network and no script: light, dark and in print."""

from gnnperf.report.benchmark import benchmark_page
from gnnperf.report.configurations import configurations_page
from gnnperf.report.prediction import Forecast, prediction_page
from gnnperf.report.retrieval import beats_roof, retrieval_page

__all__ = [
    "Forecast",
    "beats_roof",
    "benchmark_page",
    "configurations_page",
    "prediction_page",
    "retrieval_page",
]
