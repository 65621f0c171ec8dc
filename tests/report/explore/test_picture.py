"""Pictures of known nests, row by row."""

from __future__ import annotations

from nests.examples import EXAMPLES
from report.explore.maps import GRAPHS, PICTURES

from gnnperf.graph import Node, ProgramGraph
from gnnperf.report.explore.picture import ACCESS, LOOP, STATEMENT, picture


def rows(name: str, kind: int) -> list[tuple[object, ...]]:
    return [row[1:] for row in PICTURES[name].rows if row[0] == kind]


def moves(name: str) -> dict[object, object]:
    """Text of an access -> what it does along the loops around it."""
    return {text: moved for _, text, _, moved, _ in rows(name, ACCESS)}


def test_a_matrix_product() -> None:
    drawn = PICTURES["gemm"]
    loops = [(depth, name, kind) for depth, name, _, _, kind, _ in rows("gemm", LOOP)]
    assert loops == [(0, "i", "spatial"), (1, "k", "reduction"), (2, "j", "spatial")]
    ((depth, statement),) = rows("gemm", STATEMENT)
    assert (depth, statement) == (3, "C[i, j] += A[i, k] * B[k, j]")
    assert moves("gemm") == {"A[i, k]": "scr", "B[k, j]": "rsc", "C[i, j]": "src"}
    kinds = {text: kind for _, text, kind, _, _ in rows("gemm", ACCESS)}
    assert kinds == {"A[i, k]": "read", "B[k, j]": "read", "C[i, j]": "reduction"}
    assert (drawn.sizes, drawn.dtype) == ("128×64×96", "float64")
    assert drawn.work.startswith("1.57 MFLOP")


def test_rows_are_in_program_order() -> None:
    kinds = [row[0] for row in PICTURES["softmax"].rows]
    assert kinds[:3] == [LOOP, LOOP, STATEMENT]
    assert [text for _, text in rows("softmax", STATEMENT)] == [
        "top[i] max= X[i, j]",
        "Y[i, j] = exp(X[i, j] - top[i])",
        "total[i] += Y[i, j]",
        "Y[i, j] = Y[i, j] / total[i]",
    ]


def test_what_is_loaded_for_bounds_and_subscripts_is_shown() -> None:
    texts = [(row[0], row[1], row[2]) for row in PICTURES["spmm"].rows]
    inner = next(i for i, (kind, depth, _) in enumerate(texts) if kind == LOOP and depth == 1)
    assert {text for _, _, text in texts[1:inner]} == {"indptr[i]", "indptr[i + 1]"}
    gathered = texts.index((ACCESS, 3, "B[indices[p], f]"))
    assert texts[gathered + 1] == (ACCESS, 3, "indices[p]")
    assert moves("spmm")["B[indices[p], f]"] == "iic"
    assert PICTURES["spmm"].sizes == "500×?×32", "nobody has measured how long the rows are"


def test_bounds_that_vary_and_schedules_are_said() -> None:
    loops = {name: rest for _, name, *rest in rows("triangular", LOOP)}
    assert loops["j"] == [60.5, 1, "spatial", ""]
    assert PICTURES["triangular"].sizes == "120×~60.5×64"
    annotations = {name: annotation for _, name, *_, annotation in rows("tiled_gemm", LOOP)}
    assert (annotations["ii"], annotations["j"], annotations["k"]) == ("parallel", "simd", "")


def test_every_node_of_every_example_is_drawn() -> None:
    for name, graph in GRAPHS.items():
        for node_kind, row_kind in (("loop", LOOP), ("compute", STATEMENT)):
            wanted = sorted(node.label for node in graph.nodes if node.kind == node_kind)
            assert sorted(str(row[2]) for row in PICTURES[name].rows if row[0] == row_kind) == wanted, name
        drawn = {row[2] for row in PICTURES[name].rows if row[0] == ACCESS}
        assert drawn == {node.label for node in graph.nodes if node.kind == "access"}, name
        for row in PICTURES[name].rows:
            assert row[0] != ACCESS or len(str(row[4])) == row[1], "a letter for each loop around"
    assert set(GRAPHS) == set(EXAMPLES)


def test_a_graph_without_loops() -> None:
    lonely = ProgramGraph((Node("compute", {"dtype": "float32"}),), (), {})
    drawn = picture(lonely)
    assert (drawn.rows, drawn.sizes, drawn.dtype) == (((STATEMENT, 0, "compute"),), "", "float32")
