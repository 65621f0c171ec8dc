"""What exported models and stores cost: from C++, in one batch, and among a million nests."""

from gnnperf.evaluation.exported.client import Client, build_client
from gnnperf.evaluation.exported.study import ExportSettings, evaluate_export

__all__ = ["Client", "ExportSettings", "build_client", "evaluate_export"]
