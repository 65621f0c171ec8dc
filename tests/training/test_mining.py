from __future__ import annotations

import numpy as np
import pytest

from gnnperf.training import PairBatchSampler
from gnnperf.training.mining import Share


def sparse(n: int, partners: int, seed: int = 0) -> np.ndarray:
    """A regret matrix in which each nest was measured with a few others."""
    rng = np.random.default_rng(seed)
    regret = np.full((n, n), np.nan, dtype=np.float32)
    for i in range(n):
        others = rng.choice([j for j in range(n) if j != i], partners, replace=False)
        regret[i, others] = rng.random(partners)
    return regret


def test_a_small_corpus_is_one_batch() -> None:
    sampler = PairBatchSampler(sparse(10, 3), batch_size=16)
    batches = list(sampler)
    assert len(sampler) == len(batches) == 1
    assert sorted(batches[0]) == list(range(10))


def test_batches_hold_no_nest_twice_and_every_nest_is_met() -> None:
    sampler = PairBatchSampler(sparse(50, 8), batch_size=12)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert {i for batch in batches for i in batch} == set(range(50))
    assert all(len(batch) == len(set(batch)) <= 12 for batch in batches)


def test_an_anchor_meets_its_nearest_and_its_farthest_partner() -> None:
    regret = sparse(40, 6)
    for batch in PairBatchSampler(regret, batch_size=8, partners=7):  # one anchor per batch
        anchor = batch[0]
        assert {int(np.nanargmin(regret[anchor])), int(np.nanargmax(regret[anchor]))} <= set(batch)


def test_pairs_in_a_batch_were_measured_more_often_than_in_a_random_one() -> None:
    regret = sparse(200, 8)
    batches = PairBatchSampler(regret, batch_size=16)
    share = np.mean([1 - np.isnan(regret[np.ix_(batch, batch)]).mean() for batch in batches])
    assert share > 2 * (1 - np.isnan(regret).mean())


def test_the_order_follows_the_seed_and_changes_with_the_epoch() -> None:
    regret = sparse(30, 5)
    first, second = (PairBatchSampler(regret, batch_size=8, seed=1) for _ in range(2))
    epoch = list(first)
    assert epoch == list(second)
    assert epoch != list(first)


def test_nests_without_measured_partners_are_no_anchors() -> None:
    regret = np.full((3, 3), np.nan, dtype=np.float32)
    assert list(PairBatchSampler(regret, batch_size=2)) == []
    regret[0, 2] = 0.5
    assert list(PairBatchSampler(regret, batch_size=2)) == [[0, 2]]


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_share_the_batches_of_an_epoch(processes: int) -> None:
    regret = sparse(50, 8)
    drawn = list(PairBatchSampler(regret, batch_size=12, seed=3))
    shares = [Share(PairBatchSampler(regret, batch_size=12, seed=3), r, processes) for r in range(processes)]
    each = [list(share) for share in shares]
    assert {len(share) for share in each} == {len(shares[0])} == {-(-len(drawn) // processes)}
    together = [batch for turn in zip(*each, strict=True) for batch in turn]
    assert together[: len(drawn)] == drawn
    assert together[len(drawn) :] == drawn[: len(together) - len(drawn)]  # begun anew
