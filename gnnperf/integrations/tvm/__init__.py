"""In TVM: a cost model and a database for MetaSchedule, which know what was measured on other workloads."""

from gnnperf.integrations.tvm.cost_model import GNNCostModel
from gnnperf.integrations.tvm.database import TransferDatabase

__all__ = ["GNNCostModel", "TransferDatabase"]
