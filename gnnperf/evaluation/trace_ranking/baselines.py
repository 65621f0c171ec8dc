"""Cost models that ours is compared with, trained on the same records.

Each is a function: pools to learn from, pools to rank, settings -> by name, by pool, scores of its schedules
(higher is faster).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float64
from torch import nn

from gnnperf.nn import Bundle
from gnnperf.nn.scaling import Standardise
from gnnperf.nn.traces import JUDGES, TensorBundle
from gnnperf.training.traces.data import RankingData, SchedulePool
from gnnperf.training.traces.features import STORE_FEATURES
from gnnperf.training.traces.fit import JudgeFitSettings, fit_judges, train_judge

Scores = list[Float64[np.ndarray, " n"]]


@dataclass(frozen=True)
class RankingSettings:
    """folds: that the kinds are dealt into, each held out once. fit: of our training and the perceptron's.
    seed: of all training. start: what our judge of graphs begins as, see `fit_cost_model`."""

    folds: int = 6
    fit: JudgeFitSettings = field(default_factory=JudgeFitSettings)
    seed: int = 0
    start: Bundle | None = None


Contender = Callable[[Sequence[SchedulePool], Sequence[SchedulePool], RankingSettings], dict[str, Scores]]
OURS, XGB, MLP, RANDOM = "gnnperf", "xgb", "mlp", "random"
NETWORK, WITHOUT_NETWORKS = JUDGES[0], (*JUDGES[1:], "without_network")
"""The judge that passes messages over a graph, alone; those that do not, each alone, then together."""


def ours(
    known: Sequence[SchedulePool], asked: Sequence[SchedulePool], settings: RankingSettings
) -> dict[str, Scores]:
    """The cost model that is released, each of its judges alone, and together those that see no graph."""
    models, trees = fit_judges(known, settings.fit, [settings.seed], settings.start)
    bundle = TensorBundle(models, trees, vectors=known[0].vectors)
    found = [bundle.describe(pool.graphs, features=False) for pool in asked]
    scores: dict[str, Scores] = {OURS: [one.scores.astype(np.float64) for one in found]}
    for number, name in enumerate(bundle.judges):
        scores[name] = [one.judgements[number].astype(np.float64) for one in found]
    scores[WITHOUT_NETWORKS[-1]] = [one.judgements[1:].mean(0, dtype=np.float64) for one in found]
    return scores


def xgboost_model(
    known: Sequence[SchedulePool], asked: Sequence[SchedulePool], settings: RankingSettings
) -> dict[str, Scores]:
    """MetaSchedule's XGBModel on its PerStoreFeature: TVM's own class, its parameters, its pack-sum loss and
    its early stopping (tvm/s_tir/meta_schedule/cost_model/xgb_model.py), given all records at once."""
    from gnnperf.frontends.tvm.fast_import import import_tvm

    import_tvm()
    from tvm.s_tir.meta_schedule.cost_model.xgb_model import XGBConfig, XGBModel

    model = XGBModel(config=XGBConfig(seed=43 + settings.seed, nthread=1))  # 43: TVM's default
    model._train([rows for pool in known for rows in pool.stores], np.concatenate([*map(_share, known)]))
    return {XGB: [np.asarray(model._predict(list(pool.stores)), np.float64) for pool in asked]}


def _share(pool: SchedulePool) -> np.ndarray:
    """Normalised throughput as TVM's model learns it: best runtime / runtime, 0 where it failed."""
    share: np.ndarray = np.nan_to_num(np.nanmin(pool.runtime_s) / pool.runtime_s).astype(np.float32)
    return share


def perceptron(
    known: Sequence[SchedulePool], asked: Sequence[SchedulePool], settings: RankingSettings
) -> dict[str, Scores]:
    """A multi-layer perceptron on the rows of PerStoreFeature summed up, with our ranking loss (after
    TenSet's MLP, Zheng et al., NeurIPS'21)."""
    fit = settings.fit
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        rng = np.random.default_rng(settings.seed)
        data = RankingData(known, fit.model.threads)
        rows = torch.from_numpy(np.concatenate([*map(_summed, known)]))
        scale = Standardise(STORE_FEATURES, limit=4.0)
        scale.fit(rows)
        width = 2 * fit.model.statement_width
        net = nn.Sequential(
            scale, nn.Linear(STORE_FEATURES, width), nn.GELU(), nn.Dropout(fit.model.statement_dropout),
            nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1),
        )  # fmt: skip
        train_judge(
            net, data, fit, rng, fit.statement_steps, fit.statement_learning_rate,
            lambda groups: net(rows[torch.from_numpy(np.concatenate(groups))]).squeeze(1),
        )  # fmt: skip
    net.eval()
    with torch.inference_mode():
        rows_of = [torch.from_numpy(_summed(pool)) for pool in asked]
        return {MLP: [net(rows).squeeze(1).numpy().astype(np.float64) for rows in rows_of]}


def _summed(pool: SchedulePool) -> np.ndarray:
    return np.stack([rows.sum(0) for rows in pool.stores]).astype(np.float32)


CONTENDERS: dict[str, Contender] = {OURS: ours, XGB: xgboost_model, MLP: perceptron}
"""What is trained, in the order of the table; RANDOM, which is not, comes after them."""
