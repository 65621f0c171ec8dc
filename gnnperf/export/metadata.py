"""What an artefact says of itself, and the check of it when the artefact is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

import gnnperf
from gnnperf.errors import InputError
from gnnperf.export.aoti import compiled_for
from gnnperf.export.functions import Function, TensorSpec
from gnnperf.export.retrieval_functions import embed_inputs, score_inputs
from gnnperf.export.runtime_functions import runtime_inputs
from gnnperf.graph import EDGE_FIELDS, GRAPH_FIELDS, NODE_FIELDS, NODE_KINDS, RELATIONS, Field, schema_digest
from gnnperf.graph.program_graph import SCHEMA_VERSION
from gnnperf.graph.vocabulary import ENDPOINTS

FORMAT, FORMAT_VERSION = "gnnperf-model", 1
LICENCE = (
    "Trained by the gnnperf project on measurements named under corpus; under the same terms as the gnnperf "
    "repository that it was exported from."
)
NORMALISATION = (
    "Numbers of a graph enter as sign(x)*log2(1+|x|), flags as 0 or 1, categories one-hot, histograms as the "
    "number of each class. Means and deviations of the training corpus are inside the network: it takes "
    "(x - mean) / deviation, held within a limit."
)


def build_metadata(
    kind: str, backend: str, functions: Sequence[Function], about: Mapping[str, Any]
) -> dict[str, Any]:
    """The document that is put into an artefact. about: what only this kind of checkpoint has to say."""
    compiled = {"compiled_for": compiled_for()} if backend == "aoti" else {}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "backend": backend,
        "versions": {"gnnperf": gnnperf.__version__, "torch": torch.__version__},
        "licence": LICENCE,
        "normalisation": NORMALISATION,
        "functions": {f.name: f.to_dict() for f in functions},
        "graph": graph_registry(),
        **compiled,
        **about,
    }


def check_metadata(path: Path, text: str, backend: str) -> dict[str, Any]:
    """The metadata of an artefact that this gnnperf can use. InputError says what was got and expected."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("no JSON object")
    except ValueError as error:
        raise InputError(
            f"{path}: expected metadata of gnnperf inside, got none ({error}); `gnnperf export` writes it"
        ) from error
    graph = document.get("graph")
    graph = graph if isinstance(graph, dict) else {}
    versions = document.get("versions")
    _expect(path, "format", document.get("format"), FORMAT)
    _expect(path, "format_version", document.get("format_version"), FORMAT_VERSION)
    _expect(path, "backend", document.get("backend"), backend)
    _expect(path, "schema_version", graph.get("schema_version"), SCHEMA_VERSION)
    _expect(path, "schema_digest", graph.get("schema_digest"), schema_digest())
    if backend == "aoti":  # compiled against one release of libtorch
        got = versions.get("torch") if isinstance(versions, dict) else None
        _expect(path, "torch version", got, torch.__version__)
        _expect(path, "compiled_for", document.get("compiled_for"), compiled_for())
    functions = document.get("functions")
    if not isinstance(functions, dict) or not functions:
        raise InputError(f"{path}: expected functions in the metadata, got {functions!r}; export it again")
    for name, inputs in (("embed", embed_inputs), ("score", score_inputs), ("runtime", runtime_inputs)):
        if name in functions:
            _expect(path, f"inputs of {name}", *_differences(functions[name]["inputs"], inputs()))
    return document


def _differences(
    got: Sequence[Mapping[str, Any]], expected: Sequence[TensorSpec]
) -> tuple[list[str], list[str]]:
    """Words for what was got and expected of the inputs that differ; of columns, the first one."""
    if len(got) != len(expected):
        return [f"{len(got)} inputs"], [f"{len(expected)} inputs"]
    found: list[tuple[str, str]] = []
    for spec, wanted in zip(got, expected, strict=True):
        columns = zip_longest(spec.get("columns", ()), wanted.columns, fillvalue="none")
        pairs = [(_words(spec), _words(wanted.to_dict()))]
        pairs += [(f"column {g} of {wanted.name}", f"column {e} of {wanted.name}") for g, e in columns]
        found += [pair for pair in pairs if pair[0] != pair[1]][:1]
    return [g for g, _ in found], [e for _, e in found]


def _words(spec: Mapping[str, Any]) -> str:
    return f"{spec.get('name')} {spec.get('dtype')}{spec.get('shape')} in {spec.get('unit')!r}"


def _expect(path: Path, name: str, got: object, expected: object) -> None:
    if got != expected:
        raise InputError(
            f"{path}: {name} is {got}, expected {expected}; export the checkpoint again with this gnnperf"
        )


def graph_registry() -> dict[str, Any]:
    """Kinds, relations with the node kinds they may join, and every field with its place in the encoding.

    A field occupies `width` columns from `offset` on. `choices`: accepted word -> column after `offset`,
    null for the words that are encoded as zeros. `required`: a graph may not leave it out.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "schema_digest": schema_digest(),
        "node_kinds": list(NODE_KINDS),
        "relations": [
            {"name": name, "joins": sorted(map(list, ENDPOINTS[name]))} for name in RELATIONS
        ],
        "fields": {
            "node": _described(NODE_FIELDS),
            "edge": _described(EDGE_FIELDS),
            "graph": _described(GRAPH_FIELDS),
        },
    }  # fmt: skip


def _described(fields: Sequence[Field]) -> list[dict[str, Any]]:
    rows, offset = [], 0
    for field in fields:
        classes = field.classes
        rows.append(
            {
                "name": field.name,
                "kinds": list(field.kinds),
                "type": field.type,
                "unit": field.unit,
                "meaning": field.meaning,
                "offset": offset,
                "width": field.width,
                "required": field.default is None,
                "choices": {word: classes.index(c) if c else None for word, c in field.choices.items()},
            }
        )
        offset += field.width
    return rows
