"""Which configurations are proposed for a GPU that did not run any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import gpu_world

from gnnperf.devices import load_device
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import find_description, plan
from gnnperf.frontends.gpu_kernels.expressions import Expression
from gnnperf.frontends.gpu_kernels.tables import Candidates, GpuTable, load_tables
from gnnperf.nn.demand import ANY, Demand, DemandBundle, measured_files
from gnnperf.retrieval.configurations import (
    ConfigurationRanking,
    choose_greedily,
    elsewhere,
    rank_configurations,
    scenarios,
)
from gnnperf.retrieval.few_shot import adapted
from gnnperf.retrieval.tunable import (
    Runs,
    kernel_tuner_cache,
    predict_configurations,
    predict_from_runs,
    propose,
)  # fmt: skip
from gnnperf.training.demand import DemandFitSettings, fit_demand

WIDTHS = {"50": 0.1, "80": 0.2, "95": 0.4}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[GpuTable]:
    rows = gpu_world.rows(("pnpoly",))
    return load_tables(gpu_world.write(tmp_path_factory.mktemp("data") / "t.parquet", rows))


@pytest.fixture(scope="module")
def demands(tables: Sequence[GpuTable]) -> list[Demand]:
    """Trained without the first GPU."""
    return [fit_demand(tables[1:], own=own, settings=DemandFitSettings(steps=120)) for own in (True, False)]


def test_a_portfolio_covers_every_guess() -> None:
    efficiency = np.array([[1.0, 0.2, 0.7, 0.9], [0.1, 1.0, 0.7, 0.1]])
    assert choose_greedily(efficiency, np.array([0.5, 0.5]), 1) == [2]
    assert choose_greedily(efficiency, np.array([0.5, 0.5]), 2) == [2, 1]
    assert choose_greedily(efficiency, np.array([0.9, 0.1]), 2) == [0, 1]
    assert sorted(choose_greedily(efficiency, np.array([0.9, 0.1]), 9)) == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def ranking(tables: Sequence[GpuTable], demands: Sequence[Demand]) -> ConfigurationRanking:
    """Of the first GPU, by the others."""
    return rank_configurations(tables[0], demands[:1], tables[1:])


def test_good_configurations_are_found_on_a_gpu_held_out(
    tables: Sequence[GpuTable], ranking: ConfigurationRanking
) -> None:
    assert tables[0].efficiency[ranking.first(5)].max() > 0.9
    assert len(set(ranking.first(5))) == 5
    assert ranking.weights.sum() == pytest.approx(1)
    assert ranking.guesses.min(axis=1) == pytest.approx(0)


def test_runs_tell_which_gpu_this_one_is_like() -> None:
    guesses = np.array([[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]])
    ranking = ConfigurationRanking(np.array([4.0, 4.0, 4.0, 4.0]), guesses[0], guesses, np.array([0.9, 0.1]))
    found = adapted(ranking, np.array([0, 1, 2]), np.array([9.0, 8.0, 7.0]))
    assert found == pytest.approx([9.0, 8.0, 7.0, 6.0], abs=0.5)
    one = adapted(ranking, np.array([0]), np.array([2.0]))
    assert one == pytest.approx([2.0, 3.0, 4.0, 5.0], abs=1.0)


def test_like_configurations_err_alike() -> None:
    features = np.array([[0.0], [0.01], [5.0]])
    guess = np.array([[0.0, 0.1, 0.2]])
    efficiency, likely = scenarios(guess, np.ones(1), features)
    assert likely.sum() == pytest.approx(1)
    assert efficiency.max(axis=1) == pytest.approx(1)
    gap = np.abs(np.diff(np.log2(efficiency), axis=1)).mean(axis=0)
    assert gap[0] < gap[1]  # the first two are nearly one configuration
    ranking = ConfigurationRanking(guess[0], guess[0], guess, np.ones(1), features)
    assert ranking.first(2) == [0, 2]


def test_what_failed_elsewhere_is_not_proposed(ranking: ConfigurationRanking) -> None:
    assert 0 not in ranking.first(20)


@pytest.fixture
def bundle(demands: Sequence[Demand]) -> DemandBundle:
    return DemandBundle({"pnpoly": demands[:1], ANY: demands[1:]}, {"pnpoly": WIDTHS, ANY: WIDTHS})


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


def test_what_was_fast_elsewhere_has_to_be_allowed_at_these_sizes(
    bundle: DemandBundle, tables: Sequence[GpuTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"points": 2**10}
    rule = Expression.parse("block_size_x * tile_size <= points // 8", "here")
    description = replace(find_description("pnpoly"), constraints=(rule,))
    proposal = propose(description, load_device("l4"), bundle, 4, tables, small)
    assert plan(description, proposal.configurations, small).valid.all()


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


def test_runs_on_a_gpu_make_predictions_better(
    tables: Sequence[GpuTable], demands: Sequence[Demand], tmp_path: Path
) -> None:
    widths = {"pnpoly": WIDTHS, ANY: WIDTHS}
    narrow = {"pnpoly": {level: width / 2 for level, width in WIDTHS.items()}}
    networks = {"pnpoly": demands[:1], ANY: demands[1:]}
    bundle = DemandBundle(networks, widths, narrow, measured=measured_files(tables[1:]))
    table = tables[0]
    ran, asked = np.flatnonzero(table.ok)[:5], np.flatnonzero(table.ok)[5:40]
    slower = 1.7  # than all that was learned lets expect
    runs = Runs([table.configurations[i] for i in ran], np.log2(slower * table.runtime_ms[ran]))
    queries = [table.configurations[i] for i in asked]

    def error(runs: Runs) -> float:
        found = predict_from_runs(table.description, queries, table.device, bundle, runs)
        return float(np.median(np.abs(np.log2(found.runtime_ms / (slower * table.runtime_ms[asked])))))

    assert error(runs) < 0.15 < 0.5 < error(Runs([], np.empty(0)))
    before, after = (
        predict_from_runs(table.description, queries, table.device, bundle, some).interval_ms["80"]
        for some in (Runs([], np.empty(0)), runs)
    )
    assert after[1][0] / after[0][0] == pytest.approx((before[1][0] / before[0][0]) ** 0.5)
    # Of a problem of another size, as much as the network says it takes longer.
    large = Runs([{**c, "points": 4 * 20_000_000} for c in runs.configurations], runs.log2_ms + 2)
    assert error(large) < 0.3


def test_a_program_is_proposed_once(bundle: DemandBundle) -> None:
    """What threads do to stage A does not matter where A is not staged."""
    description = find_description("gemm")
    base = {"MWG": 64, "NWG": 64, "KWG": 32, "SA": 0, "SB": 0, "VWM": 2, "VWN": 2}
    alike = [{**base, "MDIMA": a, "NDIMB": b} for a in (8, 16, 32) for b in (8, 16)]
    other = [{**base, "SA": 1, "MDIMA": a} for a in (8, 16)]
    candidates = Candidates(description, load_device("l4"), [*alike, *other])
    assert candidates.programs.tolist() == [0, 0, 0, 0, 0, 0, 1, 2]
    ranking = rank_configurations(candidates, bundle.demands(description), ())
    assert sorted(ranking.first(5)) == [0, 6, 7]


def test_what_was_measured_of_a_program_counts_for_all_that_are_it() -> None:
    description, device = find_description("gemm"), load_device("RTX 3090")
    base = {"MWG": 64, "NWG": 64, "SA": 0, "SB": 0}
    ran = [{**base, "MDIMA": 16}, {**base, "MDIMA": 32}, {**base, "SA": 1}, {**base, "M": 1024}]
    table = GpuTable(description, device, ran, "made up", "RTX 3090", np.array([2.0, 4.0, 8.0, 64.0]))
    asked = Candidates(description, load_device("l4"), [{**base, "MDIMA": 8}, {**base, "MWG": 128}])
    assert elsewhere(asked, table, table.runtime_ms)[0] == pytest.approx(70 / 3)
    assert np.isnan(elsewhere(asked, table, table.runtime_ms)[1])


def test_a_parameter_that_is_not_described_makes_a_difference() -> None:
    """How pnpoly keeps the parity of crossings is not in its description."""
    candidates = Candidates(
        find_description("pnpoly"), load_device("l4"), [{"use_method": i} for i in range(3)]
    )
    assert candidates.programs.tolist() == [0, 1, 2]
