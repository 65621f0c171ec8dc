"""Schedules of TVM functions as traces: stored, replayed, transferred to other functions."""

from gnnperf.schedules.traces.document import (
    TraceDocument,
    document_of_json,
    program_key,
    replay,
    trace_document,
)
from gnnperf.schedules.traces.roles import Roles, roles_of
from gnnperf.schedules.traces.transfer import Proposal, other_tiles, transfer

__all__ = [
    "Proposal",
    "Roles",
    "TraceDocument",
    "document_of_json",
    "other_tiles",
    "program_key",
    "replay",
    "roles_of",
    "trace_document",
    "transfer",
]
