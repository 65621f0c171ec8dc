"""In TVM: a cost model and a database for MetaSchedule, which know what was measured on other workloads; and
its tuning databases as records of a schedule store."""

from gnnperf.integrations.tvm.database import TransferDatabase
from gnnperf.integrations.tvm.records import Imported, import_database
from gnnperf.retrieval.traces.cost_model import GNNCostModel

__all__ = ["GNNCostModel", "Imported", "TransferDatabase", "import_database"]
