"""Candidates for TVM functions: traces transferred and drawn, ranked by a cost model."""

__all__: list[str] = []
