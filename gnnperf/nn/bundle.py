"""`loop-nests`: the encoder that embeds program graphs, and the head that ranks recipes with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from gnnperf.graph import ProgramGraph, collate, encode, schema_digest
from gnnperf.nn.checkpoint import UNKNOWN, Contents, ModelProvenance
from gnnperf.nn.encoder import Encoder, EncoderConfig
from gnnperf.nn.graph_net import NETWORK
from gnnperf.nn.head import HeadConfig, RetrievalHead
from gnnperf.nn.profile import PROFILE_FIELDS, profile_row
from gnnperf.nn.threads import one_thread
from gnnperf.schedules.recipes import Recipe, effect_fields, effects, recipe_features, recipe_fields


@dataclass(frozen=True)
class Bundle:
    """An encoder ready to embed, and the head that ranks schedules with it.

    Attributes:
        encoder, head: in eval mode. The encoder of a loaded checkpoint is lean (`gnnperf.nn.lean`).
        schedule_fields: the values of a recipe that the head reads.
        calibration: when to trust what is retrieved, as JSON (`gnnperf.retrieval.Calibration`); None where
            that was never learned.
        provenance: where the model comes from.
    """

    MODEL: ClassVar = "loop-nests"

    encoder: Encoder
    head: RetrievalHead
    schedule_fields: Sequence[str] = field(default_factory=recipe_fields)
    calibration: Mapping[str, Any] | None = None
    provenance: ModelProvenance = UNKNOWN

    @cached_property
    def encoder_id(self) -> str:
        """Hash of the encoder's weights: embeddings of different encoders never meet in a search."""
        return encoder_id(self.encoder)

    @property
    def effect_fields(self) -> tuple[str, ...]:
        """Names of the effects of a recipe that the head reads."""
        return effect_fields()

    @property
    def embedding_width(self) -> int:
        return self.encoder.config.embedding_width

    def embed(self, graphs: Sequence[ProgramGraph], *, with_profiles: bool = False) -> NDArray[np.float32]:
        """Embed program graphs.

        Args:
            graphs: b graphs, at least one.
            with_profiles: use the dynamic profiles of the graphs that have one. Off by default:
                embeddings with and without a profile are not the same point, so that both sides of
                a search must be embedded alike.

        Returns:
            f32[b, embedding_width], rows of norm 1.
        """
        profile = torch.stack([profile_row(g.profile) for g in graphs]) if with_profiles else None
        with torch.inference_mode(), one_thread():
            embedding = self.encoder.embed(collate([encode(g) for g in graphs]), profile)
        return embedding.numpy()

    def score(
        self, graphs: Sequence[ProgramGraph], recipes: Sequence[Recipe], *, with_profiles: bool = False
    ) -> NDArray[np.float32]:
        """Predict ln(best runtime known / runtime) of s recipes on b graphs, each at least one.

        Args:
            graphs, with_profiles: as of `embed`.
            recipes: schedules to rank.

        Returns:
            f32[b, s]; the highest first is the order to try them in.
        """
        profile = torch.stack([profile_row(g.profile) for g in graphs]) if with_profiles else None
        rows = [recipe_features(recipe, self.schedule_fields) for recipe in recipes]
        schedules = torch.from_numpy(np.stack(rows))
        pairs = torch.cartesian_prod(torch.arange(len(graphs)), torch.arange(len(recipes)))
        found = torch.from_numpy(np.concatenate([effects(graph, recipes) for graph in graphs]))
        with torch.inference_mode(), one_thread():
            states = self.encoder.fingerprint(*collate([encode(g) for g in graphs]), profile)
            scores = self.head(states, schedules, found, pairs[:, 0], pairs[:, 1])
        return scores.view(len(graphs), len(recipes)).numpy()

    @staticmethod
    def reads() -> Mapping[str, Any]:
        """Layers of the network, fields of graphs, of dynamic profiles, and of the effects of recipes. Fields
        of recipes are not among them: one that was added later is not read, and recipes without it are what
        they were."""
        return {
            "network": NETWORK,
            "schema_digest": schema_digest(),
            "profile_fields": PROFILE_FIELDS,
            "effect_fields": effect_fields(),
        }

    def contents(self) -> Contents:
        """For `save_checkpoint`."""
        return Contents(
            {"encoder": self.encoder.state_dict(), "head": self.head.state_dict()},
            {
                "encoder": asdict(self.encoder.config),
                "head": asdict(self.head.config),
                "schedule_fields": tuple(self.schedule_fields),
            },
            self.provenance,
            self.calibration,
        )

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """For `load_checkpoint`."""
        about = contents.hyperparameters
        fields = tuple(about["schedule_fields"])
        if unknown := sorted(set(fields) - set(recipe_fields())):
            raise ValueError(f"schedule_fields: got {unknown[0]!r}, which recipes do not have any more")
        encoder = Encoder(EncoderConfig(**about["encoder"]), lean=True)
        widths = encoder.config.width, len(fields), len(effect_fields())
        head = RetrievalHead(*widths, HeadConfig(**about["head"]))
        return cls(
            contents.restore("encoder", encoder),
            contents.restore("head", head),
            fields,
            contents.calibration,
            contents.provenance,
        )


def encoder_id(encoder: Encoder) -> str:
    """Hash of the weights and buffers: equal for equal encoders, however they were saved."""
    digest = hashlib.sha256()
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
