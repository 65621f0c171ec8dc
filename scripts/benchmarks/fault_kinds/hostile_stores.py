"""What strangers write into exports of stores: records, nests, schedules."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import random
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from benchmarks.fault_kinds import material
from benchmarks.fault_kinds.injecting import Injector, Place, attempt, checked_line, expect
from benchmarks.fault_kinds.mutation import damaged, text_of, value
from gnnperf.graph import ProgramGraph
from gnnperf.schedules.reading import read_schedule
from gnnperf.schedules.traces.allowed import ANNOTATIONS, KINDS
from gnnperf.store import Nest, Record, Store
from gnnperf.store.schema import content_id

HEADER = {"format": "gnnperf-store", "schema_version": 1}
PRAGMAS = (
    "pragma_import_llvm", "pragma_import_c", "pragma_debug_skip_region", "pragma_tensorize",
    "software_pipeline_stage",
    "tir.script_parsing_detect_access", "meta_schedule.cache_type", "pragma_", "",
)  # fmt: skip
INSTRUCTIONS = (
    "UnsafeSetDType", "UnsafeHideBufferAccess", "TransformLayout", "TransformBlockLayout", "Bind", "Reindex",
    "AnnotateBufferAccess", "import os", "Tensorize ", "",
)  # fmt: skip


def exports(place: Place) -> Injector:
    """Exports with one hostile line between those that are right."""
    entry = material.entries()[0]
    right = [_nest_line(0), *({"record": _fields(record)} for record in entry.records)]
    wanted = {record.record_id for record in entry.records}

    def inject(chance: random.Random, work: Path) -> str:
        line = _hostile_line(chance, place.code)
        lines = [HEADER, *right, {"end": {}}]
        texts = [json.dumps(one) for one in lines]
        texts.insert(chance.randint(1, len(lines) - 1), line)
        with zstandard.open(work / "export", "wt", encoding="utf-8", errors="surrogatepass") as file:
            file.write("\n".join(texts) + "\n")
        store = Store.open(work / "store", create=True)
        added, refusal = attempt(lambda: store.import_(work / "export"))
        expect(added is not None, "lost_records", f"the whole export was refused: {refusal}")
        assert added is not None
        for refused in added.reasons:
            checked_line(refused.reason)
        kept = {r.record_id: r for e in store.entries(material.encoder_id()) for r in e.records}
        missing = wanted - {*kept}
        expect(not missing, "lost_records", f"{len(missing)} right records beside it were not imported")
        for identity in {*kept} - wanted:
            _expect_plausible(kept[identity])
        for stored in store.entries(material.encoder_id()):
            named = ProgramGraph.from_json(stored.graph_json).digest
            expect(named == stored.nest.digest, "wrong_accepted", "a digest that is not of its graph")
        return "refused" if added.refused else "as good as others"

    return inject


def _expect_plausible(record: Record) -> None:
    """Written apart from the checks of the store."""
    expect(record.record_id == content_id(record), "wrong_accepted", "an id that is not of the content")
    names = (record.kernel, record.family, record.frontend, record.device_name, record.baseline)
    safe = all(name.isprintable() and not set(name) & set("/\\<>\"'`") for name in names)
    expect(safe, "wrong_accepted", f"names {names!r:.200}")
    if record.status == "ok":
        figures = record.baseline_s, record.runtime_s, record.speedup
        finite = all(isinstance(f, float) and math.isfinite(f) and f > 0 for f in figures)
        expect(finite, "wrong_accepted", f"figures {figures}")
        baseline_s, runtime_s, speedup = figures
        assert baseline_s is not None and runtime_s is not None and speedup is not None
        apart = abs(math.log(speedup * runtime_s / baseline_s))
        expect(apart < 0.7, "wrong_accepted", f"a speedup of {speedup} with {figures}")
    _expect_harmless(json.loads(record.schedule))


def _fields(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__slots__}


def _nest_line(number: int) -> dict[str, Any]:
    entry = material.entries()[number]
    vector = np.asarray(entry.embedding, "<f4")
    fields = {name: getattr(entry.nest, name) for name in Nest.__slots__}
    fields |= {"encoder_id": material.encoder_id(), "embedding": base64.b64encode(vector.tobytes()).decode()}
    return {"nest": fields | {"graph_json": entry.graph_json}}


def _hostile_line(chance: random.Random, code: str) -> str:
    """A line by a grammar: records with another content under its own id or a claimed one, nests, neither."""
    match chance.randrange(5):
        case 0:
            return chance.choice(
                ("", "{", "[" * 100_000, '{"record":' * 400, " " * 100_000, "1" * 5_000,
                text_of(value(chance, code)))
            )  # fmt: skip
        case 1:
            return text_of(damaged(chance, _nest_line(1), code))
        case 2:
            return text_of(damaged(chance, {"record": _fields(chance.choice(material.records()))}, code))
        case 3:  # a schedule with code in it, under an id that is right
            record = chance.choice(material.records())
            schedule = text_of(hostile_schedule(chance, json.loads(record.schedule), code))
            return _forged(record, {"schedule": schedule})
        case _:
            name = chance.choice([n for n in Record.__slots__ if n != "record_id"])
            return _forged(chance.choice(material.records()), {name: value(chance, code)})


def _forged(record: Record, changes: Mapping[str, Any]) -> str:
    changed = dataclasses.replace(record, **changes)
    with suppress(ValueError, RecursionError):  # there is content that has no id
        changed = dataclasses.replace(changed, record_id=content_id(changed))
    return text_of({"record": _fields(changed)})


# --------------------------------------------------------------------------- schedules


def schedules(place: Place) -> Injector:
    """Recipes and traces with other values, other instructions, and code."""
    known = [(r.schedule_kind, json.loads(r.schedule)) for r in material.records()]

    def inject(chance: random.Random, work: Path) -> str:
        kind, schedule = chance.choice(known)
        hostile = chance.random() < 0.5
        changed = (
            hostile_schedule(chance, schedule, place.code)
            if hostile
            else damaged(chance, schedule, place.code)
        )
        text = text_of(changed)
        found, _ = attempt(
            lambda: read_schedule(chance.choice((kind, kind, kind, "recipe", "trace", "shell")), text)
        )
        if found is None:
            return "refused"
        document = json.loads(found.to_json())
        _expect_harmless(document)
        expect(
            read_schedule(found.kind, found.to_json()).key == found.key,
            "wrong_accepted",
            "it is not what it says",
        )
        found.describe()
        return "as good as others"

    return inject


def hostile_schedule(chance: random.Random, schedule: dict[str, Any], code: str) -> Any:
    """With something in it that must not be there."""
    found = json.loads(json.dumps(schedule))
    if "trace" not in found:
        name = chance.choice(
            ("order", "tile_p", "vector", "library", "omp_schedule", "chunk", "unroll", "header")
        )
        words = (
            code,
            "static) \n#include </etc/passwd>\n//",
            '; system("id");',
            2**40,
            -1,
            1.5,
            True,
            [1],
            None,
        )
        return found | {name: chance.choice(words)}
    instructions = found["trace"][0]
    at = chance.randrange(len(instructions) + 1)
    loop = next((i[3][0] for i in instructions if i[0] == "GetLoops" and i[3]), "b0")
    added: list[Any] = [
        ["Annotate", [loop, f'"{code}"'], [chance.choice(PRAGMAS)], []],
        ["Annotate", [loop, chance.choice((f'"{code}"', [1], {"a": 1}, 2**70))],
        [chance.choice([*ANNOTATIONS])], []],
        ["AnnotateBufferAccess", [loop, 0, code], ["write"], []],
        ["Tensorize", [loop], [f"../{code}", True], []],
        ["CacheWrite", ["b0", []], [0, f"global.{code}"], ["b99"]],
        ["TransformLayout", ["b0"], [0, "write", code, None, True], []],
        [chance.choice(INSTRUCTIONS), [loop], [], []],
        [chance.choice([*KINDS]), [code], [code], [code]],
    ]  # fmt: skip
    instructions.insert(at, chance.choice(added))
    return found


def _expect_harmless(schedule: Any) -> None:
    """No text in a schedule but short words without blanks, and of annotations only known keys."""
    if isinstance(schedule, dict):
        for key, inner in schedule.items():
            _expect_harmless(key)
            _expect_harmless(inner)
    elif isinstance(schedule, list):
        if schedule and schedule[0] == "Annotate" and len(schedule) == 4:
            expect({*schedule[2]} <= {*ANNOTATIONS}, "executions", f"an annotation {schedule[2]!r:.60}")
        for inner in schedule:
            _expect_harmless(inner)
    elif isinstance(schedule, str):
        allowed = all(c.isalnum() or c in '_.$-" ' for c in schedule) and len(schedule) <= 200
        expect(allowed, "executions", f"a schedule with {schedule!r:.60}")
    else:
        finite = schedule is None or abs(schedule) <= 2**62
        expect(finite, "wrong_accepted", f"a schedule with {schedule!r:.60}")
