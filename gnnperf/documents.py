"""Documents as JSON and YAML, archives, tables: what is written, and what may come from anywhere."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

DEPTH = 32
"""Levels of lists and objects: ten times what any document of gnnperf has."""
LONGEST = 2**27
"""Bytes of a document."""
SMALL, EXPANSION = 2**30, 200
"""Bytes that whatever is compressed may expand to, and how many times its size if that is more. What gnnperf
writes expands five to fifty times."""
MOST_ROWS, LARGEST_TABLE = 2**24, 2**31
"""Rows and bytes of a table."""


def text_of(path: Path) -> str:
    """The text of a document that anybody may have written. Raises OSError, and ValueError where it is none,
    or longer than `LONGEST`."""
    with path.open("rb") as file:
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise ValueError(f"a file of more than {LONGEST} bytes")
    return data.decode()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write a file beside `path`, which takes its place in one step when it is complete: another
    process or thread may be looking for it. What fails leaves what was there. Raises OSError."""
    partial = path.with_name(f"{path.name}.{threading.get_native_id()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_expansion(archive: zipfile.ZipFile, size_bytes: int) -> None:
    """Raises ValueError where the parts of an archive together are much more than its size."""
    total = sum(part.file_size for part in archive.infolist())
    if total > max(SMALL, EXPANSION * size_bytes):
        raise ValueError(f"{size_bytes} bytes that expand to {total}")


def read_parquet(source: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """A table that anybody may have written, of a path or buffer. Raises OSError and ArrowException, also
    where it is larger than `MOST_ROWS` and `LARGEST_TABLE`: a short file may say one thing very often."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        names = file.schema_arrow.names
        if missing := [name for name in columns or () if name not in names]:
            raise pa.ArrowInvalid(f"no column {missing[0]!r}")
        if file.metadata.num_rows > MOST_ROWS:
            raise pa.ArrowInvalid(f"a table of {file.metadata.num_rows} rows, more than {MOST_ROWS}")
        batches, size_bytes = [], 0
        for batch in file.iter_batches(4096, columns=columns):
            batches.append(batch)
            size_bytes += batch.nbytes
            if size_bytes > LARGEST_TABLE:
                raise pa.ArrowInvalid(f"a table of more than {LARGEST_TABLE} bytes")
        schema = file.schema_arrow if columns is None else pa.schema(map(file.schema_arrow.field, columns))
        return pa.Table.from_batches(batches, schema).combine_chunks()


def from_json(text: str) -> Any:
    """The value of a JSON text that anybody may have written. Raises ValueError, in a few words, for anything
    else, also for what Python reads beyond JSON, and what is nested deeper than `DEPTH`."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEPTH} levels") from None
    level = [value]
    for _ in range(DEPTH + 1):
        level = [inner for outer in level for inner in _items(outer)]
        if not level:
            return value
    raise ValueError(f"nested deeper than {DEPTH} levels")


def from_yaml(text: str) -> Any:
    """The value of a YAML text that anybody may have written. Raises ValueError, in a few words, for anything
    else, for tags that make objects, aliases, keys that are given twice, and what is nested deeper than
    `DEPTH`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(loader):  # type: ignore[misc, valid-type]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            if twice := [key for key, count in counts.items() if count > 1]:
                raise ValueError(f"{twice[0]!r} is given twice")
            return super().construct_mapping(node, deep)

    try:
        depth = 0
        for event in yaml.parse(text, loader):  # deep ones overflow the stack of the loader
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise ValueError(f"nested deeper than {DEPTH} levels")
            if isinstance(event, yaml.AliasEvent):  # a few lines of them are a text of gigabytes
                raise ValueError(f"an alias, *{event.anchor}")
        return yaml.load(text, Loader)
    except (yaml.YAMLError, AttributeError, LookupError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from None  # of dates that are none, it raises anything


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number in JSON")


def to_json(document: Mapping[str, Any]) -> str:
    """Strict JSON of a document of mappings, sequences, dataclasses, paths and NumPy values.

    A float that is not finite has no JSON form and becomes null.
    """
    return json.dumps(_plain(document), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | Set):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy
        return _plain(value.tolist())
    raise TypeError(f"no JSON form for {type(value).__name__}")
