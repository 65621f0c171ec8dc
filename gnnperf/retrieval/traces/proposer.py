"""Candidates for a TVM function, in the order to try them: traces of like functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.base import Tried
from gnnperf.devices import DeviceSpec
from gnnperf.errors import GnnperfError, first_line
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.quiet import quiet
from gnnperf.frontends.tvm.weights import PACKED_AHEAD
from gnnperf.retrieval.neighbours import nearest
from gnnperf.retrieval.proposers import Stages
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.scheduled import scores_of
from gnnperf.retrieval.traces.calls import CallCandidate, beside, calls_for
from gnnperf.retrieval.traces.lent_recipes import lent
from gnnperf.retrieval.traces.proposals import adopted, propose
from gnnperf.retrieval.traces.ranking import GraphScorer, hedged, ranked, ranked_again
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import TraceDocument
from gnnperf.store import Neighbour, Record, Store

if TYPE_CHECKING:
    from gnnperf.nn import Bundle


@dataclass
class TraceProposer:
    """Traces of the nearest TVM functions, transferred, with schedules drawn from MetaSchedule's rules,
    ranked by a cost model; where no function is near, recipes of nests that are nearer, too.

    recipe_stores: with recipes of DaCe nests. neighbours: functions consulted. exclude, exclude_families:
    digests and families of those that are not.
    """

    bundle: Bundle
    model: GraphScorer
    stores: Sequence[Store]
    device: DeviceSpec
    target: Any
    recipe_stores: Sequence[Store] = ()
    neighbours: int = 16
    exclude: Collection[str] = ()
    exclude_families: Collection[str] = ()
    rounds: Sequence[float] = (0.5, 0.75, 1.0)
    stages: Stages = field(default_factory=Stages)

    HEDGED = 4
    """Candidates of the first round from which on one is the most faithful, whatever the model says of it."""
    ASKED = 4
    """Times as many neighbours are looked up as are wanted: those without a trace are passed over."""
    FAR = 0.1
    """Distance of the nearest TVM function from which on DaCe nests are asked too. New shapes of collected
    kinds lie nearer (44 of 44), most stencils, of which there is no trace, at 0.12 to 0.29."""

    def ask(self, query: Query, vector: NDArray[np.float32], k: int) -> None:
        timed = self.stages.timed
        asked = partial(self._nearest, query, vector)
        query.neighbours = timed("search", partial(asked, self.stores, TraceDocument.kind))
        with quiet():
            pool = timed("proposals", partial(propose, _function(query), query.neighbours, self.target))
        query.candidates = [*timed("ranking", partial(ranked, pool.candidates, self.model))]
        query.refused = pool.refused
        timed("recipes", partial(self._borrow, query, vector))
        timed("calls", partial(self._call, query))
        query.reason = self._doubt(query)

    def first(self, candidates: Sequence[Any], count: int) -> Sequence[Any]:
        return hedged(candidates, count) if count >= self.HEDGED else candidates

    def again(self, query: Query, left: Sequence[Any], tried: Sequence[Tried]) -> Sequence[Any]:
        calls = [candidate for candidate in left if isinstance(candidate, CallCandidate)]
        traces = [candidate for candidate in left if not isinstance(candidate, CallCandidate)]
        known = [(c, m.runtime_s) for c, m in tried if not isinstance(c, CallCandidate)]
        with quiet():
            return [*calls, *ranked_again(_function(query), self.target, self.model, traces, known)]

    def adopted(self, query: Query, measured: Any) -> Any:
        with quiet():
            if isinstance(measured, CallCandidate):
                candidate = replace(measured, task=_function(query))
                candidate.program  # noqa: B018  # it may be no product
                return candidate
            return adopted(_function(query), measured, self.target)

    def _call(self, query: Query) -> None:
        """Calls of libraries, beside what there is."""
        with quiet():
            try:
                calls = calls_for(_function(query), self.target)
            except GnnperfError as reason:
                query.refused = {**query.refused, "library": first_line(reason)}
                return
        query.candidates = beside(calls, query.candidates, query.neighbours)

    def _borrow(self, query: Query, vector: NDArray[np.float32]) -> None:
        """Recipes of DaCe nests, where all TVM functions are far and these are nearer: the recipes and the
        traces in turn."""
        reach = min((n.distance for n in query.neighbours), default=math.inf)
        far = self.recipe_stores and reach > self.FAR
        nests = self._nearest(query, vector, self.recipe_stores, Recipe.kind) if far else []
        if not nests or nests[0].distance >= reach:
            return
        head = partial(scores_of, self.bundle, _function(query), vectors=self.device.vectors)
        recipes = lent(_function(query), self.target, nests, head, self.model, self.device.vectors)
        if recipes:
            both = zip_longest(recipes, query.candidates)
            query.candidates = [candidate for pair in both for candidate in pair if candidate is not None]
            query.neighbours = sorted([*query.neighbours, *nests], key=lambda n: n.distance)

    def _nearest(
        self, query: Query, vector: NDArray[np.float32], stores: Sequence[Store], kind: str
    ) -> list[Neighbour]:
        """Neighbours with schedules of a kind, that ran right with such weights as the task has."""
        wanted = self.ASKED * self.neighbours
        encoder, device = self.bundle.encoder_id, self.device.fingerprint
        constant = _function(query).constant_weights
        usable = [
            n
            for found in nearest(stores, vector, wanted, encoder, device, self.exclude)
            if (n := replace(found, records=_with_weights(found.records, constant)))
            and n.nest.family not in self.exclude_families
            and any(r.schedule_kind == kind and r.status == "ok" for r in n.records)
        ]
        return usable[: self.neighbours]

    def _doubt(self, query: Query) -> str:
        if not query.neighbours and not query.candidates:
            return f"no TVM schedule was measured on a {self.device.fingerprint} yet; collect some here"
        if not query.candidates:
            why = next(iter(query.refused.values()), "there are none")
            return f"no trace of a neighbour fits: {why}"
        return ""


def _with_weights(records: Sequence[Record], constant: bool) -> tuple[Record, ...]:
    """Of a neighbour's records those that were measured with such weights: its own kind where there are some,
    but never, for weights that vary, what was timed without packing them."""
    apart = tuple(record for record in records if record.baseline.endswith(PACKED_AHEAD))
    if constant and apart:
        return apart
    return tuple(record for record in records if not record.baseline.endswith(PACKED_AHEAD))


def _function(query: Query) -> TvmTask:
    """The task of a query that asks for traces."""
    assert isinstance(query.task, TvmTask)
    return query.task
