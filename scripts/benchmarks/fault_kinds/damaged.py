"""Files that are cut short, have bits flipped, or are gone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import zstandard

from benchmarks.fault_kinds import material
from benchmarks.fault_kinds.injecting import Injector, Place, attempt, expect
from benchmarks.fault_kinds.mutation import damage, damaged_bytes
from benchmarks.options import REPO
from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import describe_host
from gnnperf.devices.host import probe_file
from gnnperf.export import export_checkpoint, load_exported, open_flat
from gnnperf.graph import ProgramGraph
from gnnperf.measure.record_log import FILES, RecordLog
from gnnperf.nn import (
    Bundle,
    Encoder,
    EncoderConfig,
    HeadConfig,
    ScheduleHead,
    load_checkpoint,
    save_checkpoint,
)
from gnnperf.schedules.recipes import fact_fields
from gnnperf.store import Store
from gnnperf.store.index_files import FOLDER, IndexFiles
from gnnperf.store.searchable import Lists


def stores(place: Place) -> Injector:
    """One file of a store's folder."""
    template = material.filled(place.material / "store")
    entry = material.entries()[0]
    device = entry.records[0].device_fingerprint
    known = {record.record_id for record in material.records()}
    digests = {e.nest.digest for e in material.entries()}

    def use(folder: Path) -> str:
        store = Store.open(folder)
        assert entry.embedding is not None
        found = store.nearest(entry.embedding, 3, material.encoder_id(), device)
        store.prune(failed_check=True)
        kept = [*store.entries(material.encoder_id())]
        believed = {record.record_id for e in kept for record in e.records}
        expect(believed <= known, "wrong_accepted", "a record that nobody wrote")
        expect({e.nest.digest for e in kept} <= digests, "wrong_accepted", "a nest that nobody wrote")
        for stored in kept:
            named = ProgramGraph.from_json(stored.graph_json).digest
            expect(named == stored.nest.digest, "wrong_accepted", "a graph that nobody wrote")
        return "unharmed" if believed == known and len(found) == 3 else "less, and told"

    def inject(chance: random.Random, work: Path) -> str:
        damage(chance, material.copied(template, work / "store"))
        return attempt(lambda: use(work / "store"))[0] or "refused"

    return inject


def archives(place: Place) -> Injector:
    """An exported file of a store: compressed, or what was compressed."""
    Store.open(material.filled(place.material / "store")).export(place.material / "export")
    data = (place.material / "export").read_bytes()
    lines = zstandard.ZstdDecompressor().stream_reader(data).read()
    known = {record.record_id for record in material.records()}

    def inject(chance: random.Random, work: Path) -> str:
        inside = chance.random() < 0.5
        changed = zstandard.compress(damaged_bytes(chance, lines)) if inside else damaged_bytes(chance, data)
        (work / "export").write_bytes(changed)
        store = Store.open(work / "store", create=True)
        added, _ = attempt(lambda: store.import_(work / "export"))
        expect(material.held(store) <= known, "wrong_accepted", "a record that nobody wrote")
        return "refused" if added is None else "less, and told" if added.refused else "unharmed"

    return inject


# --------------------------------------------------------------------------- models


def small_model() -> Bundle:
    """A model that nobody trained."""
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=1, embedding_width=8))
    return Bundle(
        encoder.eval(), ScheduleHead(16, len(fact_fields()), HeadConfig(width=8, numbers_width=8)).eval()
    )


def checkpoints(place: Place) -> Injector:
    """The files of a checkpoint."""
    save_checkpoint(place.material / "model", small_model())
    whole = load_checkpoint(place.material / "model", Bundle)
    metadata = json.loads((place.material / "model" / "metadata.json").read_text())

    def use(folder: Path) -> Bundle:
        return load_checkpoint(folder, Bundle)

    def inject(chance: random.Random, work: Path) -> str:
        folder = material.copied(place.material / "model", work / "model")
        damage(chance, folder)
        found, _ = attempt(lambda: use(folder))
        if found is None:
            return "refused"
        same = (found.encoder_id, found.calibration) == (whole.encoder_id, whole.calibration)
        expect(same, "wrong_accepted", "other weights, or another calibration")
        read = json.loads((folder / "metadata.json").read_text())
        expect(read == metadata, "wrong_accepted", "another remark about the same model")
        return "unharmed"

    return inject


def _exported(place: Place) -> Path:
    """model.pt and store.gnnstore of a model that nobody trained."""
    model = small_model()
    save_checkpoint(place.material / "model", model)
    store = Store.open(place.material / "model" / "store", create=True)
    material.fill(store, material.entries())
    store.reembed(model.encoder_id, lambda texts: model.embed([*map(ProgramGraph.from_json, texts)]))
    export_checkpoint(place.material / "model", place.material / "out", "torchscript")
    return place.material / "out"


def artefacts(place: Place) -> Injector:
    """Exported TorchScript."""
    data = (_exported(place) / "model.pt").read_bytes()
    graphs = [ProgramGraph.from_json(entry.graph_json) for entry in material.entries()[:2]]
    right = load_exported(place.material / "out" / "model.pt").embed(graphs)

    def inject(chance: random.Random, work: Path) -> str:
        (work / "model.pt").write_bytes(damaged_bytes(chance, data))
        found, _ = attempt(lambda: load_exported(work / "model.pt").embed(graphs))
        if found is None:
            return "refused"
        expect(np.array_equal(found, right), "wrong_accepted", "other embeddings")
        return "unharmed"

    return inject


def flat_stores(place: Place) -> Injector:
    """An exported store that programs map into memory."""
    path = _exported(place) / "store.gnnstore"
    data, whole = path.read_bytes(), open_flat(path)
    (device, *_) = whole.header["fingerprints"]
    queries = np.asarray(whole.vectors[:3]).copy()

    def answers(path: Path) -> list[object]:
        store = open_flat(path)
        return [
            [(store.nest(row), distance) for row, distance in store.nearest(query, 3, device)]
            for query in queries
        ]

    right = answers(path)

    def inject(chance: random.Random, work: Path) -> str:
        (work / "store.gnnstore").write_bytes(damaged_bytes(chance, data))
        found, _ = attempt(lambda: answers(work / "store.gnnstore"))
        if found is None:
            return "refused"
        expect(found == right, "wrong_accepted", "other answers")
        return "unharmed"

    return inject


# --------------------------------------------------------------------------- what is kept beside


def caches(place: Place) -> Injector:
    """The lists of a search, and this machine's probed peaks."""
    lists = Lists(np.eye(4, dtype=np.float32), 2, np.arange(9), np.arange(9) % 4)
    host = describe_host()
    probed = json.dumps(
        {**host.to_dict(), "bandwidth_gbps": 40.0, "peak_gflops_fp32": 500.0, "source": "here"}
    )

    def of_search(chance: random.Random, work: Path) -> str:
        IndexFiles(str(work)).keep("e", "d", lists)
        damage(chance, work / FOLDER)
        found, _ = attempt(lambda: [*IndexFiles(str(work)).kept("e", "d")])
        expect(found is not None, "unexpected", "an index that is refused, not made again")
        for kept in found or ():
            same = np.array_equal(kept.centroids, lists.centroids) and np.array_equal(
                kept.list_of, lists.list_of
            )
            expect(same and kept.probes == lists.probes, "wrong_accepted", "other lists")
        return "unharmed" if found else "made again"

    def of_machine(chance: random.Random, work: Path) -> str:
        path = probe_file(host)
        path.write_bytes(damaged_bytes(chance, probed.encode()))
        found, _ = attempt(describe_host)
        expect(found is not None, "unexpected", "a probe that is refused, not made again")
        return "made again" if found == host else "unharmed"

    kinds: list[Callable[[random.Random, Path], str]] = [of_search, of_search, of_machine]
    return lambda chance, work: chance.choice(kinds)(chance, work)


def corpora(place: Place) -> Injector:
    """The files of a collected corpus, sealed or not."""
    source = REPO / "checkpoints" / "corpus" / "tensor"
    folder = place.material / "corpus"
    folder.mkdir()
    count = {"tasks": 4, "records": 40, "done": 4}
    whole: dict[str, list[str]] = {}
    for name in FILES:
        with zstandard.open(source / f"{name}.jsonl.zst", "rt", encoding="utf-8") as file:
            whole[name] = [line for line, _ in zip(file, range(count[name]), strict=False)]
        (folder / f"{name}.jsonl").write_text("".join(whole[name]))
    known = {json.dumps(json.loads(line), sort_keys=True) for lines in whole.values() for line in lines}

    def use(folder: Path) -> RecordLog:
        read_corpus(folder)
        log = RecordLog(folder)
        log.close()
        return log

    def inject(chance: random.Random, work: Path) -> str:
        copy = material.copied(folder, work / "corpus")
        if chance.random() < 0.5:
            RecordLog(copy).seal()
        changed = damage(chance, copy)
        log, _ = attempt(lambda: use(copy))
        if log is None:
            return "refused"
        records = [record for found in log.records.values() for record in found.values()]
        lines = {json.dumps(line, sort_keys=True) for line in (*log.tasks.values(), *records)}
        compressed = changed.suffix == ".zst"  # which has checksums: plain lines have none
        expect(not compressed or lines <= known, "wrong_accepted", "lines that nobody wrote")
        return "unharmed" if lines == known else "less, or other figures in a line"

    return inject
