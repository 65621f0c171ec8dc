"""Writers that are killed, find no room, are interrupted, or meet others."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.fault_kinds import material
from benchmarks.fault_kinds.damaged import small_model
from benchmarks.fault_kinds.injecting import (
    Found,
    Injector,
    Place,
    attempt,
    expect,
    may_start_processes,
    partials,
)
from gnnperf.cli.main import Interrupt, run
from gnnperf.measure.record_log import RecordLog
from gnnperf.nn import Bundle, load_checkpoint, save_checkpoint
from gnnperf.store import Record, Store

_serial = itertools.count()


def new_records(count: int) -> list[Record]:
    """Records that no store has."""
    known = material.records()
    return [
        dataclasses.replace(known[i % len(known)], provenance=json.dumps({"n": next(_serial)}), record_id="")
        for i in range(count)
    ]


def _template(place: Place) -> Path:
    """A folder with a store, an export of more, and a second store."""
    folder = place.material / "template"
    folder.mkdir()
    material.filled(folder / "store")
    other = Store.open(material.filled(folder / "other"))
    other.add_records(new_records(40))
    other.export(folder / "more.jsonl.zst")
    save_checkpoint(folder / "model", small_model())
    return folder


def _sound(folder: Path, acknowledged: set[str], among: set[str] | None = None) -> Store:
    """The store, which has what was acknowledged and can be written."""
    store, line = attempt(lambda: Store.open(folder / "store"))
    if store is None:
        raise Found("lost_records", f"the store is lost: {line}")
    found = material.held(store)
    lost = acknowledged - found
    expect(not lost, "lost_records", f"{len(lost)} acknowledged records are lost")
    expect(among is None or found <= among, "wrong_accepted", "records that nobody wrote")
    (added,) = store.add_records(new_records(1))
    expect(added.record_id in material.held(store), "lost_records", "nothing can be added any more")
    return store


# --------------------------------------------------------------------------- power cuts


def crashes(place: Place) -> Injector:
    """What files a write has made up to some moment, the last of them perhaps cut short."""
    template = _template(place)

    def inject(chance: random.Random, work: Path) -> str:
        before, after = work / "before", material.copied(template, work / "after")
        store = Store.open(after / "store")
        store.add_records(new_records(3))
        acknowledged = material.held(store)
        material.copied(after, before)
        old = {path: path.stat().st_mtime_ns for path in _files(after / "store")}
        match chance.randrange(4):
            case 0:
                store.add_records(new_records(chance.randint(1, 50)))
            case 1:
                store.import_(after / "more.jsonl.zst")
            case 2:
                store.merge(Store.open(after / "other"))
            case _:
                store.prune()
        made = [path for path in _files(after / "store") if path not in old]
        made.sort(key=lambda path: path.stat().st_mtime_ns)
        _cut(chance, made, after, before)
        _sound(before, acknowledged)
        return "nothing lost"

    return inject


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "latest_version_hint.json"]


def _cut(chance: random.Random, made: list[Path], after: Path, before: Path) -> None:
    """Carry over what was made up to some file, which is only written in part: then a manifest, which is put
    in place whole, is still under a temporary name."""
    kept = chance.randrange(len(made) + 1)
    for place, path in enumerate(made[: kept + 1]):
        target = before / path.relative_to(after)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        if place == kept:
            data = data[: chance.randrange(len(data) + 1)]
            if path.suffix == ".manifest":
                target = target.with_name(f".tmp_{path.name}_{chance.randrange(10**6)}")
        target.write_bytes(data)


def killed(place: Place) -> Injector:
    """A collector of a corpus that is killed while it writes."""

    def inject(chance: random.Random, work: Path) -> str:
        said, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            log = RecordLog(work / "corpus")
            for number in itertools.count():
                log.add(
                    "records",
                    {"task": "t", "schedule_id": str(number), "padding": "x" * (number * 97 % 5_000)},
                )
                os.write(tell, f"{number}\n".encode())
        os.close(tell)
        try:
            head = os.read(said, 2)  # it has begun
            time.sleep(chance.uniform(0, 0.02))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        with os.fdopen(said, "rb") as rest:
            lines = (head + rest.read()).split(b"\n")[:-1]
        survivor, line = attempt(lambda: RecordLog(work / "corpus"))
        if survivor is None:
            raise Found("lost_records", f"the corpus is lost: {line}")
        survivor.close()
        found = {*survivor.records.get("t", {})}
        expect({line.decode() for line in lines} <= found, "lost_records", "an acknowledged line is lost")
        return "nothing lost"

    def forking(chance: random.Random, work: Path) -> str:
        with may_start_processes():
            return inject(chance, work)

    return forking


# --------------------------------------------------------------------------- full disks


@contextmanager
def _file_limit(nbytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def full_disks(place: Place) -> Injector:
    """No file may grow beyond a few bytes."""
    template = _template(place)

    def inject(chance: random.Random, work: Path) -> str:
        folder = material.copied(template, work / "place")
        store = Store.open(folder / "store")
        acknowledged = material.held(store)
        weights = load_checkpoint(folder / "model", Bundle).encoder_id
        actions: list[Callable[[], Any]] = [
            lambda: store.add_records(new_records(200)),
            lambda: store.import_(folder / "more.jsonl.zst"),
            lambda: store.merge(Store.open(folder / "other")),
            store.prune,
            lambda: store.export(folder / "export"),
            lambda: save_checkpoint(folder / "model", small_model()),
            lambda: _log(folder / "corpus", 50),
            lambda: len(Store.open(folder / "fresh", create=True).add_records(new_records(20))),
        ]
        action = chance.choice(actions)
        with _file_limit(chance.choice((0, 1, 100, 1_000, 4_096, 20_000, chance.randrange(100_000)))):
            done, line = attempt(action)
        _sound(folder, acknowledged | _added(done))
        expect(not partials(folder), "leftovers", f"{partials(folder)[:1]}")
        model, line = attempt(lambda: load_checkpoint(folder / "model", Bundle))
        expect(model is not None, "lost_records", f"the checkpoint is lost: {line}")
        expect(model is None or model.encoder_id == weights, "wrong_accepted", "other weights")
        return "refused" if done is None else "enough room"

    return inject


def _log(folder: Path, count: int) -> RecordLog:
    log = RecordLog(folder)
    try:
        for number in range(count):
            log.add("records", {"task": "t", "schedule_id": str(number), "padding": "x" * 500})
    finally:
        log.close()
    return log


def _added(done: Any) -> set[str]:
    return {r.record_id for r in done if isinstance(r, Record)} if isinstance(done, list) else set()


# --------------------------------------------------------------------------- interrupts


def interrupts(place: Place) -> Injector:
    """Ctrl-C in a command of a store, at some moment."""
    template = _template(place)

    def inject(chance: random.Random, work: Path) -> str:
        folder = material.copied(template, work / "place")
        acknowledged = material.held(Store.open(folder / "store"))
        store, export = str(folder / "store"), str(folder / "more.jsonl.zst")
        words = chance.choice(
            (
                ["import", store, export], ["merge", store, str(folder / "other")], ["check", store],
                ["info", store],
                ["prune", store], ["export", store, str(folder / "out.jsonl.zst")],
            )
        )  # fmt: skip
        Interrupt().hear(signal.SIGALRM)
        said, printed = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 0.05))
                code = run(["store", *words])
            except KeyboardInterrupt:  # after the command, or before it
                code = 130
            finally:
                for _ in range(2):  # as `main` does it; one more may arrive in between
                    with suppress(KeyboardInterrupt):
                        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        lines = said.getvalue().splitlines()
        expect(code in (0, 130), "unexpected", f"exit code {code}: {lines[-1:]}")
        harmless = not any(word in line for word in ("unexpected", "Traceback") for line in lines)
        expect(harmless, "unexpected", f"{words[0]} says {lines!r}")
        expect(not partials(folder), "leftovers", f"{partials(folder)[:1]}")
        _sound(folder, acknowledged)
        return "interrupted" if code else "done before"

    return inject


# --------------------------------------------------------------------------- two of everything


def two_at_once(place: Place) -> Injector:
    """Two writers of one store, corpus or checkpoint."""
    template = _template(place)

    def inject(chance: random.Random, work: Path) -> str:
        folder = material.copied(template, work / "place")
        acknowledged = material.held(Store.open(folder / "store"))
        actions: list[Callable[[], Any]] = [
            lambda: Store.open(folder / "store").add_records(new_records(5)),
            lambda: Store.open(folder / "store").import_(folder / "more.jsonl.zst"),
            lambda: Store.open(folder / "store").merge(Store.open(folder / "other")),
            lambda: Store.open(folder / "store").prune(),
            lambda: len(Store.open(folder / "fresh", create=True).add_records(new_records(5))),
            lambda: _log(folder / "corpus", 5),
            lambda: Store.open(folder / "store").export(folder / "out"),
        ]
        results = _at_once([chance.choice(actions) for _ in range(chance.choice((2, 2, 4)))])
        for error in (found for found in results if isinstance(found, BaseException)):
            raise error
        _sound(folder, acknowledged.union(*map(_added, results)))
        if (folder / "corpus").exists():
            RecordLog(folder / "corpus").close()
        return "one refused" if None in results else "both done"

    return inject


def _at_once(actions: list[Callable[[], Any]]) -> list[Any]:
    """What each gives: its result, None where it was refused, or what it raised."""
    barrier = threading.Barrier(len(actions))
    results: list[Any] = [None] * len(actions)

    def act(place: int) -> None:
        barrier.wait()
        try:
            results[place] = attempt(actions[place])[0]
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=act, args=(place,)) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
