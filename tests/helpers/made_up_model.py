"""A model of loop nests that nobody trained, and programs and nests that it is tested with."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.sharing import shared_folder
from nests.examples import EXAMPLES

import gnnperf
from gnnperf.graph import ProgramGraph, encode
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nests import nest_graph
from gnnperf.nn import (
    Bundle,
    Encoder,
    ModelProvenance,
    ScheduledProgram,
    ScheduleHead,
    collate_programs,
    load_checkpoint,
    save_checkpoint,
    scheduled_programs,
)
from gnnperf.schedules.recipes import DEFAULTS, fact_fields
from gnnperf.store import Store

RELEASED = Path(gnnperf.__file__).parent.parent / "checkpoints" / "loop-nests"
CPU = "cpu/x86_64/avx512"


@pytest.fixture(scope="session")
def made_up_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint of the model, with the nests and records of the released store, embedded by it."""
    return shared_folder(tmp_path_factory, "made-up-model", _save)


@pytest.fixture(scope="session")
def made_up(made_up_folder: Path) -> Bundle:
    """The model."""
    return load_checkpoint(made_up_folder, Bundle)


def example_programs() -> list[ScheduledProgram]:
    """Small real nests, each under a few schedules that fit it."""
    nests = [example() for example in EXAMPLES.values()]
    found = [scheduled_programs(nest, nest_graph(nest), DEFAULTS[:4]) for nest in nests]
    return [program for programs in found for program in programs if program is not None]


def senseless_programs(graphs: Sequence[ProgramGraph], seed: int) -> list[ScheduledProgram]:
    """Any graphs, with costs and facts that are random; a third of the facts are absent."""
    chance, programs = np.random.default_rng(seed), []
    for graph in map(encode, graphs):
        costs = chance.normal(4, 4, (len(graph.node_kind), len(COST_FIELDS))).astype(np.float32)
        facts = chance.normal(2, 2, len(fact_fields())).astype(np.float32)
        facts[chance.random(len(facts)) < 1 / 3] = np.nan
        programs.append(ScheduledProgram(graph, costs, facts))
    return programs


def _save(folder: Path) -> None:
    torch.manual_seed(0)
    encoder = Encoder()
    head = ScheduleHead(encoder.config.width, len(fact_fields()))
    graphs, node_costs, facts = collate_programs(example_programs())
    encoder.fit_scales(graphs, node_costs)
    head.fit_scales(graphs.node_kind, node_costs, graphs.batch, facts)
    with torch.no_grad():
        for _ in range(20):  # statistics of the normalisation: without them, all embeddings are alike
            encoder(*graphs)
    provenance = ModelProvenance({"digest": "made up", "device": CPU})
    model = Bundle(encoder.eval(), head.eval(), provenance=provenance)
    save_checkpoint(folder, model)
    shutil.copytree(RELEASED / "store", folder / "store")
    Store.open(folder / "store").reembed(
        model.encoder_id, lambda texts: model.embed([*map(ProgramGraph.from_json, texts)])
    )
