"""A released model: a folder with `weights.pt` and `metadata.json`, checked when it is loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import gnnperf
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph, collate, encode, schema_digest
from gnnperf.nn.encoder import Encoder, EncoderConfig
from gnnperf.nn.head import HeadConfig, RetrievalHead
from gnnperf.nn.profile import PROFILE_FIELDS, profile_row
from gnnperf.nn.threads import one_thread
from gnnperf.schedules.recipes import Recipe, effect_fields, effects, recipe_features, recipe_fields

BUNDLE_VERSION = 3
WEIGHTS, METADATA = "weights.pt", "metadata.json"


@dataclass(frozen=True)
class BundleMetadata:
    """What a bundle says of itself. Everything that decides whether it may be used is checked at load.

    Attributes:
        encoder_id: hash of the encoder's weights; embeddings of different encoders never meet in a search.
        schema_digest: digest of the graph's field registry that the encoder was trained on.
        profile_fields: the values of a dynamic profile that it reads.
        schedule_fields: the values of a recipe that the head reads.
        effect_fields: the values of its effects that the head reads.
        encoder, head: hyperparameters.
        corpus: digest and sizes of the training corpus, families held out.
        figures: metrics on held-out families, by name.
        seed: of the training run.
        versions: of gnnperf and torch.
    """

    encoder_id: str
    encoder: EncoderConfig
    head: HeadConfig
    schema_digest: str
    profile_fields: tuple[str, ...] = PROFILE_FIELDS
    schedule_fields: tuple[str, ...] = field(default_factory=recipe_fields)
    effect_fields: tuple[str, ...] = field(default_factory=effect_fields)
    corpus: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    bundle_version: int = BUNDLE_VERSION


@dataclass(frozen=True)
class Bundle:
    """An encoder ready to embed, the head that ranks schedules with it, and their metadata."""

    encoder: Encoder
    head: RetrievalHead
    metadata: BundleMetadata

    @property
    def encoder_id(self) -> str:
        return self.metadata.encoder_id

    @property
    def embedding_width(self) -> int:
        return self.metadata.encoder.embedding_width

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
        names = self.metadata.schedule_fields
        schedules = torch.from_numpy(np.stack([recipe_features(recipe, names) for recipe in recipes]))
        pairs = torch.cartesian_prod(torch.arange(len(graphs)), torch.arange(len(recipes)))
        found = torch.from_numpy(np.concatenate([effects(graph, recipes) for graph in graphs]))
        with torch.inference_mode(), one_thread():
            states = self.encoder.fingerprint(*collate([encode(g) for g in graphs]), profile)
            scores = self.head(states, schedules, found, pairs[:, 0], pairs[:, 1])
        return scores.view(len(graphs), len(recipes)).numpy()


def encoder_id(encoder: Encoder) -> str:
    """Hash of the weights and buffers: equal for equal encoders, however they were saved."""
    digest = hashlib.sha256()
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def save_bundle(
    folder: Path | str,
    encoder: Encoder,
    head: RetrievalHead,
    *,
    corpus: Mapping[str, Any] | None = None,
    figures: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> Bundle:
    """Write an encoder, its head and their metadata; what was in the folder's two files is replaced.

    Raises:
        InputError: the folder cannot be written.
    """
    folder = Path(folder)
    metadata = BundleMetadata(
        encoder_id=encoder_id(encoder),
        encoder=encoder.config,
        head=head.config,
        schema_digest=schema_digest(),
        corpus=dict(corpus or {}),
        figures=dict(figures or {}),
        seed=seed,
        versions={"gnnperf": gnnperf.__version__, "torch": torch.__version__},
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save({"encoder": encoder.state_dict(), "head": head.state_dict()}, folder / WEIGHTS)
        (folder / METADATA).write_text(json.dumps(asdict(metadata), indent=2) + "\n")
    except OSError as error:
        raise InputError(
            f"cannot write the bundle {folder}: {error.strerror}; choose another folder"
        ) from error
    return Bundle(encoder.eval(), head.eval(), metadata)


def load_bundle(folder: Path | str) -> Bundle:
    """Read a bundle and check that this gnnperf can use it.

    Raises:
        InputError: not a bundle, damaged, or made for another graph schema (got / expected).
    """
    folder = Path(folder)
    metadata = _read_metadata(folder)
    encoder = Encoder(metadata.encoder)
    widths = metadata.encoder.width, len(metadata.schedule_fields), len(metadata.effect_fields)
    head = RetrievalHead(*widths, metadata.head)
    try:
        weights = torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu")
        encoder.load_state_dict(weights["encoder"])
        head.load_state_dict(weights["head"])
    except Exception as error:  # torch.load raises a dozen types for a damaged file
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"cannot read {folder / WEIGHTS}: {reason}; restore or retrain the bundle"
        ) from error
    _expect(folder, "encoder_id", encoder_id(encoder), metadata.encoder_id)
    return Bundle(encoder.eval(), head.eval(), metadata)


def _read_metadata(folder: Path) -> BundleMetadata:
    try:
        raw = json.loads((folder / METADATA).read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"expected a bundle folder with {METADATA} and {WEIGHTS}, got {folder} ({type(error).__name__}); "
            "give a folder written by `gnnperf train fit`"
        ) from error
    _expect(folder, "bundle_version", raw.get("bundle_version"), BUNDLE_VERSION)
    _expect(folder, "schema_digest", raw.get("schema_digest"), schema_digest())
    _expect(folder, "profile_fields", tuple(raw.get("profile_fields", ())), PROFILE_FIELDS)
    _expect(folder, "effect_fields", tuple(raw.get("effect_fields", ())), effect_fields())
    known = set(recipe_fields())  # those added since then are not read; recipes without them are as ever
    _expect(folder, "unknown schedule fields", sorted(set(raw.get("schedule_fields", ())) - known), [])
    try:
        raw["encoder"], raw["head"] = EncoderConfig(**raw["encoder"]), HeadConfig(**raw["head"])
        raw["profile_fields"] = tuple(raw["profile_fields"])
        raw["schedule_fields"] = tuple(raw["schedule_fields"])
        raw["effect_fields"] = tuple(raw["effect_fields"])
        return BundleMetadata(**raw)
    except (InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"damaged {folder / METADATA}: {error}; restore or retrain the bundle") from error


def _expect(folder: Path, name: str, got: object, expected: object) -> None:
    if got != expected:
        raise InputError(
            f"bundle {folder}: {name} is {got}, expected {expected}; "
            "use a bundle trained with this version, or retrain with `gnnperf train fit`"
        )
