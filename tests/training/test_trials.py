"""Trials: what is learned from, and in which batches."""

from __future__ import annotations

from collections import Counter
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.nests import RECIPES, small_nest
from helpers.synthetic import held_nest, measurement, nest, nest_like, two_worlds, write_corpus
from torch_geometric.data import Batch

from gnnperf.devices import VectorUnit
from gnnperf.graph import GraphBatch, collate
from gnnperf.nn import ScheduledProgram, scheduled_programs
from gnnperf.schedules.recipes import Recipe
from gnnperf.training import Corpus, CorpusDataModule, load_corpus, scheduled
from gnnperf.training.scheduled import ScheduledNests
from gnnperf.training.trials import TrialSampler, by_nest, trials_of

NARROW = VectorUnit(32, 16)

COUNTS = [5, 1, 3, 0, 2, 4]
"""Trials of each nest; numbered nest by nest, they begin at 0, 5, 6, 9, 9, 11."""
NEST_OF = np.repeat(range(len(COUNTS)), COUNTS)


def epoch(sampler: TrialSampler) -> list[list[int]]:
    return list(sampler)


def test_every_nest_is_met_once_an_epoch_with_as_many_trials_as_are_wanted() -> None:
    sampler = TrialSampler(COUNTS, nests=2, trials=3)
    for _ in range(5):
        batches = epoch(sampler)
        assert len(batches) == len(sampler) == 2
        assert [len(set(NEST_OF[batch])) for batch in batches] == [2, 2]
        drawn = [trial for batch in batches for trial in batch]
        assert len(drawn) == len(set(drawn))
        # Nests with one trial, or none, are left out: there is nothing to compare.
        assert Counter(NEST_OF[drawn].tolist()) == {0: 3, 2: 3, 4: 2, 5: 3}


def test_trials_of_a_nest_lie_next_to_each_other() -> None:
    for batch in TrialSampler([6] * 9, nests=4, trials=3):
        of_batch = np.repeat(range(9), 6)[batch]
        assert (of_batch.reshape(-1, 3) == of_batch.reshape(-1, 3)[:, :1]).all()


def test_epochs_differ_and_a_seed_repeats_them() -> None:
    one, same, other = (TrialSampler([8] * 6, 2, 4, seed) for seed in (1, 1, 2))
    first, second = epoch(one), epoch(one)
    assert [first, second] == [epoch(same), epoch(same)]
    assert first != second
    assert first != epoch(other)
    # In the long run every trial is drawn.
    assert {trial for _ in range(20) for batch in epoch(one) for trial in batch} == set(range(48))


@pytest.mark.parametrize("counts", [[], [1, 0, 1]])
def test_nothing_to_compare_no_batches(counts: list[int]) -> None:
    sampler = TrialSampler(counts, 4, 4)
    assert (len(sampler), epoch(sampler)) == (0, [])


def test_values_as_a_table_with_a_row_for_each_nest() -> None:
    nests = torch.tensor([7, 7, 7, 2, 5, 5])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], requires_grad=True)
    table = by_nest(values, nests)
    expected = [[1.0, 2.0, 3.0], [4.0, np.nan, np.nan], [5.0, 6.0, np.nan]]
    np.testing.assert_array_equal(table.detach(), expected)
    judges = by_nest(torch.stack([values, -values]), nests)
    assert judges.shape == (2, 3, 3)
    np.testing.assert_array_equal(judges[1].detach(), -np.array(expected))
    table.nan_to_num().sum().backward()
    assert values.grad is not None and values.grad.tolist() == [1.0] * 6


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A nest with four schedules, and one of which the corpus does not hold the loops."""
    loops, unknown = small_nest(64, 32, reduction=True), nest_like([64])
    first = held_nest(loops, "sums")
    lines = [
        measurement(first["task"], "tile", 0.25),
        measurement(first["task"], "stream", 0.5),
        measurement(first["task"], "wrong", None),
        measurement(first["task"], "unfit", 0.3),  # measured of old, but it does not fit now
        measurement(unknown.digest, "tile", 0.5),
        measurement(unknown.digest, "stream", 0.6),
    ]
    return load_corpus(write_corpus(tmp_path, [first, nest(unknown, "unknown")], lines))


def test_trials_are_what_was_measured_of_nests_that_are_held(corpus: Corpus) -> None:
    held, unknown = trials_of(corpus)
    assert unknown == []
    measured = {round(float(trial.log_efficiency), 3) for trial in held}
    assert measured == {0.0, round(log(0.25 / 0.5), 3), round(-log(32), 3)}
    assert all(trial.nest.tolist() == [0] for trial in held)
    nest = corpus.nests[0]
    assert nest.nest is not None
    (expected,) = scheduled_programs(nest.nest, nest.graph, [RECIPES["stream"]])
    (stream,) = (t for t in held if t.log_efficiency == pytest.approx(log(0.5)))
    assert expected is not None
    np.testing.assert_array_equal(stream.facts[0], expected.facts)
    assert stream.node_costs.shape == expected.node_costs.shape


def test_trials_side_by_side_are_their_graphs_side_by_side(corpus: Corpus) -> None:
    """torch-geometric puts them together as `collate` does."""
    held, _ = trials_of(corpus)
    found = GraphBatch.of(Batch.from_data_list(held))
    recipes = {s: r for s, r in corpus.efficiency.recipes.items() if s != "unfit"}
    programs = corpus.scheduled.of(corpus.nests[0], recipes)
    expected = collate([program.graph for program in programs if program is not None])
    for got, tensor in zip(found, expected, strict=True):
        torch.testing.assert_close(got, tensor, rtol=0, atol=0)


def test_scheduled_programs_of_a_corpus_are_made_once(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[Recipe]] = []

    def counted(
        nest: object, graph: object, recipes: list[Recipe], trips: object, vectors: VectorUnit
    ) -> list[object]:
        assert vectors == NARROW
        made.append(list(recipes))
        return [ScheduledProgram(None, None, recipe) if recipe.library == "" else None for recipe in recipes]  # type: ignore[arg-type]

    monkeypatch.setattr(scheduled, "scheduled_programs", counted)
    known, (nest, unknown) = ScheduledNests(NARROW), corpus.nests
    names = {name: RECIPES[name] for name in ("tile", "unfit")}
    first = known.of(nest, names)
    assert [program is None for program in first] == [False, True]
    more = known.of(nest, {"unfit": RECIPES["unfit"], "stream": RECIPES["stream"], "tile": RECIPES["tile"]})
    assert more[0] is None and more[2] is first[0] and more[1] is not None
    assert more[1].facts is RECIPES["stream"]
    assert made == [[RECIPES["tile"], RECIPES["unfit"]], [RECIPES["stream"]]]
    assert known.of(unknown, names) == [None, None]


def test_programs_are_scheduled_for_the_machine_that_measured_them(tmp_path: Path) -> None:
    """A machine with AVX2 measured a row tiled in 4 vectors: 4 * 32 bytes are 32 floats, not 64."""
    name, recipe = "cpu/x86_64/avx2", Recipe(order="row", register_p=4)
    device = {"fingerprint": name, "name": "test"}
    line = held_nest(small_nest(256, 128, False, "add"), "rows", device=device)
    measured = [{**measurement(line["task"], "rows", 0.5, device=name), "schedule": recipe.to_dict()}]
    corpus = load_corpus(write_corpus(tmp_path, [line], measured))
    (known,) = corpus.nests
    assert known.nest is not None
    (program,) = corpus.scheduled.of(known, corpus.efficiency.recipes)
    recipes = list(corpus.efficiency.recipes.values())
    (expected,) = scheduled_programs(known.nest, known.graph, recipes, vectors=NARROW)
    (wide,) = scheduled_programs(known.nest, known.graph, recipes)
    assert program is not None and expected is not None and wide is not None
    np.testing.assert_array_equal(program.node_costs, expected.node_costs)
    assert not np.array_equal(program.node_costs, wide.node_costs)


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # Lightning with a newer torch
def test_batches_are_pairs_of_trials_and_nests(tmp_path: Path) -> None:
    data = CorpusDataModule([str(two_worlds(tmp_path))], ["map_add"], batch_size=8, trial_nests=4, trials=2)
    data.setup()
    seen: list[int] = []
    train = data.splits["train"]
    for batch, _, _ in data.train_dataloader():
        trials, nests = batch["trials"], batch["nests"]
        assert trials.nest.tolist() == np.repeat(trials.nest.tolist()[::2], 2).tolist()
        seen += trials.nest.tolist()[::2]
        assert set(nests.position.tolist()) <= set(train)
        assert nests.regret.shape == (len(nests.position),) * 2
    assert len(seen) >= len(train)
    assert set(seen) == set(train)  # every nest, and none that is held out
    _, trials = data.val_dataloader()
    (held_out,) = trials
    assert set(held_out.nest.tolist()) == set(data.splits["validation"])
