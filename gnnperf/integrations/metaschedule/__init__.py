"""MetaSchedule: its tuning databases as records of a schedule store."""

from gnnperf.integrations.metaschedule.database import Imported, import_database

__all__ = ["Imported", "import_database"]
