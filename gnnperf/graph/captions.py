"""What a picture or a table says of a node, in words and units that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import Node, ProgramGraph


NO_BREAK = "\u00a0"


def title(graph: ProgramGraph) -> str:
    """Work, traffic and parallelism of the nest in one line."""
    values = graph.values
    return " · ".join(
        (
            f"{_si(values.get('total_flops', 0))}FLOP",
            f"{bytes_text(values.get('distinct_bytes', 0))} distinct",
            f"{_number(values.get('arithmetic_intensity', 0))} FLOP/byte",
            f"{_number(values.get('parallel_iterations', 0))} parallel iterations",
        )
    )


def caption(graph: ProgramGraph, index: int) -> list[str]:
    """Lines that describe one node; the first is its label."""
    node = graph.nodes[index]
    head = node.label or node.kind
    if node.kind == "loop":
        return [head, *_loop(node)]
    if node.kind == "compute":
        runs = f"{_number(node['flops'])} FLOP × {_number(node['instances'])}"
        return [head, f"{node['dtype']}, {runs}"]
    if node.kind == "access":
        return [
            head,
            f"{node['access_kind']}, footprint {bytes_text(node['footprint_bytes'])}",
            _moves(graph, index),
        ]
    if node.kind == "buffer":
        lives = ", transient" if node["transient"] else ""
        return [head, f"{node['dtype']}, rank {node['rank']}, {bytes_text(node['size_bytes'])}{lives}"]
    shape = " × ".join(f"{_number(node[f'{axis}_extent'])}" for axis in "mnk")
    return [head, f"{node['dtype']}, {shape}"]


def _loop(node: Node) -> list[str]:
    extent = "unknown extent" if node["extent_unknown"] else f"{_number(node['extent'])} iterations"
    if node["extent_varies"] and not node["extent_unknown"]:
        extent = f"~{extent}"
    notes = [str(node["loop_kind"])]
    if node["step"] != 1:
        notes.append(f"step {node['step']}")
    if node["tile_level"]:
        notes.append(f"tile level {node['tile_level']}")
    if node["annotation"] != "none":
        words = [node["annotation"], node["omp_schedule"], node["binding"]]
        notes.append(" ".join(str(w) for w in words if w != "none"))
    if node["collapse"]:
        notes.append(f"collapse {node['collapse']}")
    return [extent, ", ".join(notes)]


def _moves(graph: ProgramGraph, access: int) -> str:
    """Stride of the access along each loop around it."""
    words = []
    for edge in graph.edges:
        if edge.kind == "indexes" and edge.target == access:
            how = {
                "affine": f"{_number(edge['stride_bytes'])}{NO_BREAK}B",
                "invariant": "reused",
            }.get(str(edge["subscript"]), str(edge["subscript"]))
            words.append(f"{graph.nodes[edge.source].label}:{NO_BREAK}{how}")
    return ", ".join(words)


def _number(value: object) -> str:
    assert isinstance(value, int | float)
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def bytes_text(value: object) -> str:
    """ "1.5 MiB"."""
    assert isinstance(value, int | float)
    size, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}" if size < 1000 else f"{size:,.0f} {units[0]}"


def _si(value: object) -> str:
    assert isinstance(value, int | float)
    size, prefixes = float(value), ["", "k", "M", "G", "T", "P"]
    while size >= 1000 and len(prefixes) > 1:
        size, prefixes = size / 1000, prefixes[1:]
    return f"{size:.3g} {prefixes[0]}"
