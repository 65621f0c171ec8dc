"""Which configurations are proposed for a GPU that did not run any."""

from __future__ import annotations

from collections.abc import Sequence

import gpu_world
import numpy as np
import pytest

from gnnperf.devices import load_device
from gnnperf.errors import InputError
from gnnperf.frontends.tunable import find_description, plan
from gnnperf.retrieval.configurations import portfolio, rank
from gnnperf.retrieval.tunable import kernel_tuner_cache, predict_configurations, propose
from gnnperf.training.demand import Demand, FitSettings, fit_demand
from gnnperf.training.demand_bundle import ANY, DemandBundle
from gnnperf.training.gpu_tables import GpuTable, load_tables

WIDTHS = {"50": 0.1, "80": 0.2, "95": 0.4}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[GpuTable]:
    rows = gpu_world.rows(("pnpoly",))
    return load_tables(gpu_world.write(tmp_path_factory.mktemp("data") / "t.parquet", rows))


@pytest.fixture(scope="module")
def demands(tables: Sequence[GpuTable]) -> list[Demand]:
    """Trained without the first GPU."""
    return [fit_demand(tables[1:], own=own, settings=FitSettings(steps=200)) for own in (True, False)]


def test_a_portfolio_covers_every_guess() -> None:
    efficiency = np.array([[1.0, 0.2, 0.7, 0.9], [0.1, 1.0, 0.7, 0.1]])
    assert portfolio(efficiency, np.array([0.5, 0.5]), 1) == [2]
    assert portfolio(efficiency, np.array([0.5, 0.5]), 2) == [2, 1]
    assert portfolio(efficiency, np.array([0.9, 0.1]), 2) == [0, 1]
    assert sorted(portfolio(efficiency, np.array([0.9, 0.1]), 9)) == [0, 1, 2, 3]


def test_good_configurations_are_found_on_a_gpu_held_out(
    tables: Sequence[GpuTable], demands: Sequence[Demand]
) -> None:
    ranking = rank(tables[0], demands[:1], tables[1:])
    assert tables[0].efficiency[ranking.first(5)].max() > 0.9
    assert len(set(ranking.first(5))) == 5
    assert ranking.weights.sum() == pytest.approx(1)
    assert ranking.guesses.min(axis=1) == pytest.approx(0)


def test_what_failed_elsewhere_is_not_proposed(tables: Sequence[GpuTable], demands: Sequence[Demand]) -> None:
    assert 0 not in rank(tables[0], demands[:1], tables[1:]).first(20)


@pytest.fixture
def bundle(demands: Sequence[Demand]) -> DemandBundle:
    return DemandBundle({"pnpoly": demands[:1], ANY: demands[1:]}, {"pnpoly": WIDTHS, ANY: WIDTHS}, {})


@pytest.mark.parametrize("kernel", ["pnpoly", "convolution2d"])
def test_proposals_are_allowed_and_different(
    bundle: DemandBundle, tables: Sequence[GpuTable], kernel: str
) -> None:
    description, device = find_description(kernel), load_device("l4")
    proposal = propose(description, device, bundle, 4, tables)
    assert len({tuple(c.values()) for c in proposal.configurations}) == 4
    assert plan(description, proposal.configurations).valid.all()
    assert proposal.prediction.fits.all()
    assert proposal.spaces == (["pnpoly_made_up"] if kernel == "pnpoly" else [])
    document = kernel_tuner_cache(proposal, description)
    assert document["cache"] == {}
    assert document["start"] == [
        [c[k] for k in document["tune_params_keys"]] for c in proposal.configurations
    ]
    for key, values in document["tune_params"].items():
        assert {c[key] for c in proposal.configurations} == set(values)


def test_predictions_have_nested_intervals_and_grow_with_the_problem(bundle: DemandBundle) -> None:
    description, device = find_description("pnpoly"), load_device("h200")
    small, large = (
        predict_configurations(description, [{}], device, bundle, {"points": n}) for n in (2**20, 2**25)
    )
    assert 8 < large.runtime_ms[0] / small.runtime_ms[0] < 128
    ends = [large.interval_ms[level] for level in ("95", "80", "50")]
    lows, highs = [lo[0] for lo, _ in ends], [hi[0] for _, hi in ends]
    assert lows == sorted(lows)
    assert highs == sorted(highs, reverse=True)
    assert lows[-1] < large.runtime_ms[0] < highs[-1]
    with pytest.raises(InputError, match="unknown size 'M'; known: points, vertices"):
        predict_configurations(description, [{}], device, bundle, {"M": 4})
