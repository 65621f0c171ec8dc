"""What users name as `path/to/file.py:name`: their files, run as modules of their own."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError, first_line


def split_spec(spec: str, what: str) -> tuple[Path, str]:
    """`path/to/file.py:name` as its two parts."""
    text, separator, name = spec.rpartition(":")
    if not separator or not name.isidentifier():
        raise InputError(f"{what}: expected path/to/file.py:name, got {spec!r}")
    return Path(text), name


def load_attribute(path: Path, name: str, what: str, kind: type | tuple[type, ...] = ()) -> Any:
    """`name` of the Python file at `path`; the file is run as a module of its own.

    kind: of what the file is expected to offer, for the message where there is no such name.
    Raises InputError.
    """
    if not path.is_file():
        raise InputError(f"{what}: there is no file {str(path)!r}")
    unique = _module_name(path)
    specification = importlib.util.spec_from_file_location(unique, path.resolve())
    if specification is None or specification.loader is None:
        raise InputError(f"{what}: {str(path)!r} is not a Python file (expected file.py:name)")
    module = importlib.util.module_from_spec(specification)
    folder = str(path.resolve().parent)
    sys.modules[unique] = module  # frontends look up a function's globals through its module
    sys.path.insert(0, folder)
    writes_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True  # in the user's folder
    try:
        with redirect_stdout(sys.stderr):  # standard output may be a JSON document
            specification.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.filename else str(path)
        raise InputError(f"{what}: {where}: syntax error: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the file is the user's
        raise InputError(
            f"{what}: importing {str(path)!r} failed: {type(error).__name__}: {first_line(error)}"
        ) from None
    finally:
        sys.dont_write_bytecode = not writes_bytecode
        sys.path.remove(folder)
    if not hasattr(module, name):
        have = sorted(k for k, v in vars(module).items() if isinstance(v, kind))
        hint = f"; it has {', '.join(have)}" if have else ""
        raise InputError(f"{what}: {str(path)!r} has no {name!r}{hint}")
    return getattr(module, name)


def _module_name(path: Path) -> str:
    """A name of its own for the user's module (frontends make it part of labels)."""
    name = "user_" + re.sub(r"\W", "_", path.stem)
    return next(n for k in itertools.count() if (n := f"{name}_{k}" if k else name) not in sys.modules)
