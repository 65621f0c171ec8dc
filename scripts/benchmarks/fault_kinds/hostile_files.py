"""What strangers write into files that describe: program graphs, devices, tunable kernels, tables."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import yaml

from benchmarks.fault_kinds import material
from benchmarks.fault_kinds.injecting import Injector, Place, attempt, expect
from benchmarks.fault_kinds.mutation import damaged, damaged_bytes, text_of
from gnnperf.devices import DeviceSpec, load_device, read_devices
from gnnperf.devices.catalog import _CATALOG
from gnnperf.frontends.gpu_kernels.description import KERNELS, Description, read_description
from gnnperf.frontends.gpu_kernels.plan import configurations_of, plan
from gnnperf.graph import ProgramGraph, encode
from gnnperf.nn.runtime.operator_table import read_operators
from gnnperf.retrieval.tunable import read_runs
from gnnperf.store.checks import digest_problem


def graphs(place: Place) -> Injector:
    """Program graphs with other nodes, edges and values, cut short, and none at all."""
    known = [json.loads(entry.graph_json) for entry in material.entries()]

    def inject(chance: random.Random, work: Path) -> str:
        document = chance.choice(known)
        text = text_of(damaged(chance, document, place.code))
        if chance.random() < 0.2:
            text = damaged_bytes(chance, json.dumps(document).encode()).decode(errors="surrogateescape")
        found, _ = attempt(lambda: ProgramGraph.from_json(text))
        if found is None:
            return "refused"
        # As a store would check it, which may refuse more.
        problem, _ = attempt(lambda: digest_problem(text, "0" * 32))
        if problem and not problem.startswith("expected the digest"):
            return "refused"
        again = ProgramGraph.from_json(found.to_json())
        expect(again == found, "wrong_accepted", "a graph that is not what it says")
        parts = [np.asarray(part) for part in dataclasses.asdict(encode(found)).values()]
        finite = all(np.isfinite(part).all() for part in parts if part.dtype.kind == "f")
        expect(finite, "wrong_accepted", "a graph with an infinite number")
        return "as good as others"

    return inject


def devices(place: Place) -> Injector:
    """Descriptions of devices in YAML."""
    known = [yaml.safe_load(path.read_text()) for path in sorted(_CATALOG.glob("*.yaml"))]

    def use(path: Path) -> list[DeviceSpec]:
        return [*read_devices(path).values()]

    def inject(chance: random.Random, work: Path) -> str:
        _write_yaml(chance, work / "device.yaml", chance.choice(known), place.code)
        found, _ = attempt(lambda: use(work / "device.yaml"))
        for device in found or ():
            numbers = [v for v in dataclasses.asdict(device).values() if isinstance(v, int | float)]
            expect(all(0 <= v < math.inf for v in numbers), "wrong_accepted", f"numbers {numbers}")
        return "refused" if found is None else "as good as others"

    return inject


def kernels(place: Place) -> Injector:
    """Descriptions of tunable kernels in YAML, whose expressions are evaluated."""
    known = [yaml.safe_load(path.read_text()) for path in sorted(KERNELS.glob("*.yaml"))]

    def use(path: Path) -> Description:
        description = read_description(path)
        plan(description, configurations_of(description, limit=20))
        return description

    def inject(chance: random.Random, work: Path) -> str:
        document = chance.choice(known)
        if chance.random() < 0.4:
            document = _with_expression(chance, document, place.code)
        _write_yaml(chance, work / "kernel.yaml", document, place.code)
        found, _ = attempt(lambda: use(work / "kernel.yaml"))
        return "refused" if found is None else "as good as others"

    return inject


def _with_expression(chance: random.Random, document: dict[str, Any], code: str) -> dict[str, Any]:
    found = json.loads(json.dumps(document))
    name = next(iter(found["parameters"]))
    text = chance.choice(
        (
            code, f"{code} or 1", f"(lambda: {code})()", f"[{code} for x in (1,)]", f"{name}.__class__",
            "9**9**9**9",
            f"{name}**{name}**{name}", "1//0", f"{name}%0", "-1**0.5", "(" * 150 + "1" + ")" * 150,
            "-" * 3_000 + "1", "+".join(["1"] * 20_000),
            "1 if " * 300 + "1", "0x" + "f" * 5_000, "9" * 5_000, "1j",
            "'a'*9999999999",
            "min", "max()", "cdiv(1)", "min(1,2,3,4)", "cdiv(*[1,2])", f"{name}:=1", "é", "\0", "a\nb",
            "True", "None",
        )
    )  # fmt: skip
    match chance.randrange(4):
        case 0:
            found.setdefault("constraints", []).append(text)
        case 1:
            chance.choice(found["loops"])["extent"] = text
        case 2:
            next(iter(found["buffers"].values()))["shape"][0] = text
        case _:
            found["compute"][0] = {"do": text} if chance.random() < 0.5 else text
    return found


def _write_yaml(chance: random.Random, path: Path, document: Any, code: str) -> None:
    if chance.random() < 0.25:
        levels = [f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(12)]
        bomb = "\n".join(["a0: &a0 [x, x]", *levels, "name: *a12"])
        text = chance.choice(
            (
                f"!!python/object/apply:eval [{code!r}]", f"name: !!python/name:os.system {code}", "&a [*a]",
                "&a {kind: gpu, name: *a}", "[" * 3_000, "- " * 3_000, "? " * 3_000, "{a: " * 3_000, bomb,
                "%YAML 9.9\n---\n",
                "kind: gpu\nkind: cpu", "a: *nobody", "\t", "---\n---\n", "!!binary x", "!!timestamp 9",
                "=", "<<: 1",
                "{2026-13-45: 1}", "[1]: 2", "{{}: 1}", "2026-01-01", "name: 0x", ".inf", "1_0:59", "\x85",
                "a: !x 1",
            )
        )  # fmt: skip
        path.write_text(text, encoding="utf-8")
    elif chance.random() < 0.3:
        path.write_bytes(damaged_bytes(chance, yaml.safe_dump(document).encode()))
    else:
        text = text_of(damaged(chance, document, code))  # JSON is YAML, nearly
        path.write_text(text, encoding="utf-8", errors="replace")


# --------------------------------------------------------------------------- tables


def tables(place: Place) -> Injector:
    """Runs of kernels in CSV, operators in Parquet."""
    device = load_device("a100-sxm4-40gb")
    formats: list[Callable[[random.Random, Path], str]] = [_runs(place, device), _operators(place)]

    def inject(chance: random.Random, work: Path) -> str:
        return chance.choice(formats)(chance, work)

    return inject


def _runs(place: Place, device: DeviceSpec) -> Callable[[random.Random, Path], str]:
    rows = [{"device": device.name, "runtime_ms": 1.5 + i, "MWG": 64, "NWG": 32} for i in range(4)]

    def inject(chance: random.Random, work: Path) -> str:
        path = work / "runs.csv"
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        if chance.random() < 0.5:
            cells = [line.split(",") for line in lines]
            chosen = chance.choice(cells)
            chosen[chance.randrange(len(chosen))] = chance.choice(
                (
                    "",
                    "nan",
                    "inf",
                    "-1",
                    "1e999",
                    '"',
                    place.code,
                    "x" * 100_000,
                    "\0",
                    "0",
                    "NaN",
                    "é",
                    "2026-01-01",
                )
            )
            lines = [",".join(row) for row in cells]
        data = "\n".join(lines).encode()
        path.write_bytes(damaged_bytes(chance, data) if chance.random() < 0.5 else data)
        found, _ = attempt(lambda: read_runs(path, device, {}))
        if found is None:
            return "refused"
        expect(np.isfinite(found.log2_ms).all(), "wrong_accepted", f"runtimes {2**found.log2_ms}")
        return "as good as others"

    return inject


def _operators(place: Place) -> Callable[[random.Random, Path], str]:
    row = {
        "op_family": "linear",
        "op": "linear",
        "device": "NVIDIA L4",
        "B": 1,
        "M": 64,
        "N": 64,
        "K": 64,
        "H": 0,
    }

    def inject(chance: random.Random, work: Path) -> str:
        path = work / "operators.parquet"
        changed = dict(row)
        if chance.random() < 0.6:
            name = chance.choice([*row])
            changed[name] = chance.choice(
                (None, -1, 0, 1.5, 2**62, "x", place.code, float("nan"), [1], {"a": 1})
            )
            if chance.random() < 0.2:
                del changed[name]
            changed |= {"dtype": chance.choice(("fp32", "fp16", "fp7", "", place.code))}
        pq.write_table(pa.Table.from_pylist([changed] * 3), path)
        if chance.random() < 0.5:
            path.write_bytes(damaged_bytes(chance, path.read_bytes()))
        found, _ = attempt(lambda: read_operators(path))
        if found is None:
            return "refused"
        numbers = [np.asarray(v)[np.asarray(found.usable)] for v in found.columns.values()]
        expect(all(np.isfinite(n).all() for n in numbers), "wrong_accepted", "operators of infinite size")
        return "as good as others"

    return inject
