"""Schedules of TVM functions as traces: stored, replayed, transferred to other functions."""

from gnnperf.schedules.traces.document import (
    TraceDocument,
    document_of_json,
    program_key,
    replay,
    trace_document,
)
from gnnperf.schedules.traces.roles import BlockRoles, roles_of
from gnnperf.schedules.traces.transfer import TraceProposal, other_tiles, transfer

__all__ = [
    "BlockRoles",
    "TraceDocument",
    "TraceProposal",
    "document_of_json",
    "other_tiles",
    "program_key",
    "replay",
    "roles_of",
    "trace_document",
    "transfer",
]
