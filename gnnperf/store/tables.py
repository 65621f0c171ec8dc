"""The tables on disk: everything about LanceDB is in this file.

LanceDB keeps a table as immutable data files and a list of versions. A write makes its data file first
and then commits by putting the next version in place, which succeeds for exactly one writer: a process
killed at any moment leaves the last version and a stray file, several processes may write at once, and
the same holds on object storage. Appends never conflict. A deletion or compaction may, and is repeated.

LanceDB runs threads of its own, which a fork does not take along: a fork of a process that has opened a
store must not use it. What is forked to compile and measure does not.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from gnnperf.errors import InputError, StoreError
from gnnperf.store.schema import NESTS, RECORDS, SCHEMA_VERSION

T = TypeVar("T")

COMPACT_EVERY = 128
"""Commits. Every commit adds a file, and reading slows down with their number."""

KEEP_VERSIONS = timedelta(hours=1)
"""Compaction keeps what younger versions need, for processes that are reading them."""

_ATTEMPTS = 12
_MET_ANOTHER = ("conflict", "too many concurrent writers")
"""What LanceDB says of a commit that another came before, at once or after attempts of its own."""
_CUT_SHORT = "failed to fill whole buffer"
"""What it says of a file that lacks its end."""
_DELETE_BATCH = 20_000
_READ_BATCH = 8_192
_MAKING_S = 5.0
_REASON_LENGTH = 240  # characters: of a failed request, LanceDB reports everything


class Seen(NamedTuple):
    """What of a table was read: at which version, how many rows, and the `row_id` of the last of them."""

    version: int = -1
    rows: int = 0
    last: int | None = None


class Table:
    """One table: read whole columns or what is new in them, append rows, delete rows, compact."""

    def __init__(self, table: Any, location: str) -> None:
        self._table = table
        self._location = location
        self._served = location.startswith("db://")

    def version(self) -> int:
        """The newest version any process has committed."""
        with _errors(self._location, writing=False):
            self._table.checkout_latest()
            return int(self._table.version)

    def count(self) -> int:
        """Number of rows."""
        with _errors(self._location, writing=False):
            return int(self._table.count_rows())

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of the newest version, in the order in which they were committed."""
        return self._settled(lambda: self._query(columns).to_arrow())

    def news(self, seen: Seen, columns: Sequence[str]) -> tuple[Seen, pa.Table, bool]:
        """What was committed since: (all that is seen then, rows, whether those that were seen are there
        still). Where some are gone, the rows are all that there are. `row_id` is one of the columns.

        Rows are added at the end, and compaction keeps their order: where the last row that was seen has the
        place that it had, none before it has gone.
        """
        if self.version() == seen.version:
            return seen, pa.table({}), True
        return self._settled(lambda: self._news(seen, columns))

    def _news(self, seen: Seen, columns: Sequence[str]) -> tuple[Seen, pa.Table, bool]:
        rows = self._query(columns).offset(max(0, seen.rows - 1)).to_arrow()
        ids = rows["row_id"]
        if seen.rows and not (len(ids) and ids[0].as_py() == seen.last):
            return *self._news(Seen(), columns)[:2], False
        new = rows.slice(min(seen.rows, 1))
        last = ids[-1].as_py() if len(ids) else None
        return Seen(int(self._table.version), seen.rows + new.num_rows, last), new, True

    def find(self, column: str, values: Iterable[str], columns: Sequence[str]) -> pa.Table:
        """The rows of the newest version whose `column` is one of the values."""
        listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
        return self._settled(lambda: self._query(columns).where(f"{column} IN ({listed})").to_arrow())

    def batches(self) -> Iterator[pa.Table]:
        """All rows of the newest version, a few thousand at a time."""
        stream = iter(self._settled(lambda: self._query(None).to_batches(_READ_BATCH)))
        while True:
            with _errors(self._location, writing=False):
                batch = next(stream, None)
            if batch is None:
                return
            yield pa.Table.from_batches([batch])

    def _query(self, columns: Sequence[str] | None) -> Any:
        self._table.checkout_latest()
        # A query has a default limit on a server.
        query = self._table.search().limit(max(1, self._table.count_rows()))
        return query if columns is None else query.select(list(columns))

    def _settled(self, read: Callable[[], T]) -> T:
        with _errors(self._location, writing=False):
            try:
                return read()
            except (RuntimeError, OSError):
                # Another process may have compacted this version away since we looked up its number.
                return read()

    def append(self, rows: pa.Table) -> None:
        """Add rows in one commit: all of them or, if the process dies, none."""
        if not rows.num_rows:
            return
        version = self._commit(lambda: self._table.add(rows), rows.num_rows)
        if not self._served and version % COMPACT_EVERY == 0:
            self._tidy()

    def delete(self, row_ids: Iterable[int | None]) -> None:
        """Delete rows by `row_id`. None: those that have none, which gnnperf did not write."""
        given = list(row_ids)
        if None in given:
            self._commit(partial(self._table.delete, "row_id IS NULL"))
        ids = [str(int(row_id)) for row_id in given if row_id is not None]
        for start in range(0, len(ids), _DELETE_BATCH):
            listed = ", ".join(ids[start : start + _DELETE_BATCH])
            self._commit(partial(self._table.delete, f"row_id IN ({listed})"))

    def compact(self) -> None:
        """Join small files, and drop files that no version younger than `KEEP_VERSIONS` needs."""
        if not self._served:  # a server does this by itself
            self._commit(lambda: self._table.optimize(cleanup_older_than=KEEP_VERSIONS))

    def _tidy(self) -> None:
        """Compact if nothing is in the way: the rows are safe already, and a later commit tries again."""
        with suppress(StoreError):
            self.compact()

    def _commit(self, write: Callable[[], object], added: int | None = None) -> int:
        """Write, and read what is new: as many rows at the end as were added, or (None) all. Returns the
        version."""
        with _errors(self._location, writing=True):
            for attempt in range(_ATTEMPTS):
                # Also before the first attempt: a version this old may be gone by now.
                self._table.checkout_latest()
                try:
                    write()
                    return self._read_back(added)
                except RuntimeError as error:
                    met = any(word in str(error).lower() for word in _MET_ANOTHER)
                    if not met or attempt == _ATTEMPTS - 1:
                        raise
                time.sleep(random.uniform(0, min(1.0, 0.01 * 2**attempt)))
            raise AssertionError("unreachable")

    def _read_back(self, added: int | None) -> int:
        """On a full disk, LanceDB commits a file that lacks its end, and then nobody can read the table. Such
        a version is undone, unless another process has added to it. Raises OSError."""
        version = int(self._table.version)
        if not is_local(self._location):
            return version
        rows = int(self._table.count_rows())
        try:
            first = 0 if added is None else max(0, rows - added)
            self._table.search().limit(max(1, rows)).offset(first).select(["row_id"]).to_arrow()
        except (RuntimeError, OSError) as error:
            self._table.checkout_latest()
            if _CUT_SHORT not in str(error) or self._table.version != version:
                raise
            self._table.checkout(version - 1)
            self._table.restore()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        return version


def open_tables(location: str, create: bool) -> tuple[Table, Table]:
    """The tables `nests` and `records` at a folder or URI.

    Raises InputError where there is no store, unless `create`, and where a file is in its place.

    `records` is created first: a store whose creation was interrupted has an empty `records` and no
    `nests`, and is completed.
    """
    if is_local(location):
        with _errors(location, writing=create):
            _check_folder(Path(location), create)
    database = _connect(location, writing=create)
    with _errors(location, writing=False):
        present = {name for name in ("records", "nests") if name in _names(database)}
    if not present and not create:
        raise InputError(
            f"expected a schedule store at {location}, got a folder without one; "
            "name another, or make one with `gnnperf store import`"
        )
    records = _open(database, location, "records", RECORDS, create="nests" not in present)
    if "nests" not in present and records.count():
        raise StoreError(_corrupt(location, "the table `nests` is missing"))
    return _open(database, location, "nests", NESTS, create=True), records


def _check_folder(folder: Path, create: bool) -> None:
    if file := next((path for path in (folder, *folder.parents) if path.is_file()), None):
        raise InputError(f"expected a folder for a schedule store, got the file {file}; name another place")
    if not create and not folder.is_dir():
        raise InputError(
            f"expected a schedule store at {folder}, got nothing; "
            "name one, or make one with `gnnperf store import`"
        )


def is_local(location: str) -> bool:
    """Whether the location is a folder of this machine's file system, and not a URI."""
    return "://" not in location


def _connect(location: str, writing: bool) -> Any:
    # Conflicts are expected and handled here; LanceDB would print each as a warning.
    os.environ.setdefault("LANCEDB_LOG", "error")
    # Takes most of a second, so only when a store is opened.
    with suppress(ImportError), _bare_package("lance_namespace_urllib3_client"):
        import lancedb
    import lancedb

    with _errors(location, writing=writing):
        return lancedb.connect(location)


@contextmanager
def _bare_package(name: str) -> Iterator[None]:
    """Modules of a package can be imported without what its `__init__` imports. LanceDB needs the types of
    that one; the hundreds of functions beside them, which check their arguments, take half a second more."""
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None:
        yield
        return
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        del sys.modules[name]


def _names(database: Any) -> set[str]:
    names: set[str] = set()
    token = None
    while True:
        page = database.list_tables(page_token=token)
        names.update(page.tables)
        token = page.page_token
        if not token:
            return names


def _open(database: Any, location: str, name: str, schema: pa.Schema, create: bool) -> Table:
    if create and name not in _names(database):
        with _errors(location, writing=True):
            try:
                database.create_table(name, schema=schema)
            except ValueError as error:
                if "already exists" not in str(error):  # else another process was first
                    raise
    with _errors(location, writing=False):
        table = _opened(database, name)
        found = table.schema
    _check_schema(found, schema, f"table `{name}` of the schedule store {location}")
    return Table(table, location)


def _opened(database: Any, name: str) -> Any:
    """A table that is there: the folder of one that another process is making comes before its content."""
    deadline = time.monotonic() + _MAKING_S
    while True:
        try:
            return database.open_table(name)
        except ValueError as error:
            if "not found" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _check_schema(got: pa.Schema, expected: pa.Schema, where: str) -> None:
    version = (got.metadata or {}).get(b"gnnperf_schema_version", b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise StoreError(
            f"{where}: expected schema version {SCHEMA_VERSION}, got {version}; "
            "export it with the gnnperf that wrote it, or use that one"
        )
    if not got.equals(expected):
        wrong = [
            f"{name}: expected {_type(expected, name)}, got {_type(got, name)}"
            for name in dict.fromkeys([*expected.names, *got.names])
            if _type(expected, name) != _type(got, name)
        ]
        difference = "; ".join(wrong) or "columns in another order"
        raise StoreError(f"{where}: {difference}; restore it from an export")


def _type(schema: pa.Schema, name: str) -> str:
    return str(schema.field(name).type) if name in schema.names else "no such column"


# --------------------------------------------------------------------------- errors

_PANICS = ("PanicException", "RustPanic")
"""Of damaged files, LanceDB's own code may fail; neither can be imported, and the first is no Exception."""
_DENIED = ("permission denied", "read-only file system", "operation not permitted")


@contextmanager
def _errors(location: str, *, writing: bool) -> Iterator[None]:
    """LanceDB's errors as one line that says what to do."""
    try:
        yield
    except BaseException as error:
        panicked = type(error).__name__ in _PANICS
        if not panicked and not isinstance(error, RuntimeError | OSError | ValueError):
            raise
        raise StoreError(_explain(location, error, writing)) from error


def _explain(location: str, error: BaseException, writing: bool) -> str:
    reason = _reason(error)
    verb = "write" if writing else "read"
    if any(phrase in reason.lower() for phrase in _DENIED):
        advice = "it can be read; make it writable, or write to a copy" if writing else "make it readable"
        return f"no permission to {verb} the schedule store {location}; {advice}"
    if "no space left" in reason.lower():
        return f"no space left to write the schedule store {location}; what it holds is safe; free some space"
    if not is_local(location):
        advice = "check the URI, the network and the credentials"
        return f"cannot {verb} the schedule store {location}: {reason}; {advice}"
    if writing:
        return f"cannot write the schedule store {location}: {reason}; what it holds is safe"
    return _corrupt(location, reason)


def _corrupt(location: str, reason: str) -> str:
    return (
        f"the schedule store {location} is corrupt ({reason}); move it away, "
        "and restore it from a copy or with `gnnperf store import`"
    )


def _reason(error: BaseException) -> str:
    """The first line, without LanceDB's prefixes and source positions."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    line = (str(error).splitlines() or [type(error).__name__])[0]
    line = re.sub(r",?\s*/\S+\.rs:\d+:\d+", "", line)
    line = re.sub(r"^(lance error: )?(LanceError\(\w+\): )?", "", line).strip()
    return line if len(line) <= _REASON_LENGTH else f"{line[:_REASON_LENGTH]}..."
