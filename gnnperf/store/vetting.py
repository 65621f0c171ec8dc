"""Everything that a store checks of what comes from elsewhere: the rest is refused, and told."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnnperf.errors import InputError, first_line
from gnnperf.store.checks import digest_problem, embedding_problem, nest_problem, record_problem
from gnnperf.store.results import Refused
from gnnperf.store.schema import Nest, Record, checked, name_problem, to_graph_json, to_nests, to_records

TOLD = 1_000
"""Refusals that are told one by one."""


class Vetting:
    """Goes through nests and records, and keeps the reasons for what it refuses.

    Attributes:
        refused: how many. reasons: of the first `TOLD`. row_ids: of refused rows, of nests and of records;
            None of a row without one.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        """widths: of the embeddings of encoders that are known; of others, the first one counts."""
        self._widths = dict(widths)
        self.refused = 0
        self.reasons: list[Refused] = []
        self.row_ids: tuple[list[int | None], list[int | None]] = ([], [])

    def refuse(self, where: str, reason: str) -> None:
        """Count one more."""
        self.refused += 1
        if len(self.reasons) < TOLD:
            self.reasons.append(Refused(where, reason))

    def nest_problem(self, nest: Nest, encoder_id: str, vector: NDArray[np.float32], graph_json: str) -> str:
        """Why an embedding of a nest is not believed; empty where it is."""
        problem = (
            nest_problem(nest)
            or name_problem(encoder_id)
            or embedding_problem(vector, self._widths.get(encoder_id, vector.size))
            or digest_problem(graph_json, nest.digest)
        )
        if not problem:
            self._widths.setdefault(encoder_id, vector.size)
        return problem

    def record(self, record: Record) -> Record:
        """The record in its canonical form. Raises InputError where it is not believed."""
        canonical = checked(record)
        if problem := record_problem(canonical):
            raise InputError(problem)
        return canonical

    def nest_rows(self, rows: pa.Table) -> pa.Table:
        """The rows of `NESTS` that are believed."""
        problems = [
            self._row_problem(nest, encoder_id, vector, blob)
            for nest, encoder_id, vector, blob in zip(
                to_nests(rows), *(rows[name].to_pylist() for name in ("encoder_id", "embedding", "graph")),
                strict=True,
            )
        ]  # fmt: skip
        return self._believed(rows, rows["digest"].to_pylist(), problems, "nest", self.row_ids[0])

    def record_rows(self, rows: pa.Table) -> pa.Table:
        """The rows of `RECORDS` that are believed."""
        problems = []
        for record in to_records(rows):
            try:
                self.record(record)
                problems.append("")
            except InputError as error:
                problems.append(first_line(error))
        return self._believed(rows, rows["record_id"].to_pylist(), problems, "record", self.row_ids[1])

    def _row_problem(
        self, nest: Nest, encoder_id: str, vector: list[float] | None, blob: bytes | None
    ) -> str:
        if vector is None or blob is None:
            return "expected an embedding and a graph"
        try:
            return self.nest_problem(nest, encoder_id, np.array(vector, np.float32), to_graph_json(blob))
        except InputError as error:
            return first_line(error)

    def _believed(
        self,
        rows: pa.Table,
        names: list[str | None],
        problems: list[str],
        what: str,
        row_ids: list[int | None],
    ) -> pa.Table:
        if not any(problems):
            return rows
        for row_id, name, problem in zip(rows["row_id"].to_pylist(), names, problems, strict=True):
            if problem:
                row_ids.append(row_id)
                self.refuse(f"{what} {ascii(name or 'without a name')[1:33]}", problem)
        return rows.filter(pa.array([not problem for problem in problems]))
