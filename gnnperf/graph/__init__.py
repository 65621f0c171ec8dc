"""The program graph: schema, canonical digest, serialisation, drawing, encoding and costs."""

from gnnperf.graph.builder import GraphBuilder
from gnnperf.graph.collation import GraphBatch, collate
from gnnperf.graph.encoding import EncodedGraph, encode, signed_log2
from gnnperf.graph.fields import (
    EDGE_FEATURES,
    EDGE_FIELDS,
    GRAPH_FEATURES,
    GRAPH_FIELDS,
    NODE_FEATURES,
    NODE_FIELDS,
    Field,
)
from gnnperf.graph.program_graph import Edge, Node, ProgramGraph
from gnnperf.graph.schema import schema_digest
from gnnperf.graph.vocabulary import EDGE_KINDS, NODE_KINDS, RELATIONS

__all__ = [
    "EDGE_FEATURES",
    "EDGE_FIELDS",
    "EDGE_KINDS",
    "GRAPH_FEATURES",
    "GRAPH_FIELDS",
    "NODE_FEATURES",
    "NODE_FIELDS",
    "NODE_KINDS",
    "RELATIONS",
    "Edge",
    "EncodedGraph",
    "Field",
    "GraphBatch",
    "GraphBuilder",
    "Node",
    "ProgramGraph",
    "collate",
    "encode",
    "schema_digest",
    "signed_log2",
]
