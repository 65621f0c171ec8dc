"""`@gnnperf.tuned`: a DaCe program that is tuned when it is first called, and remembers."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, overload

import dace
import numpy as np
from dace.frontend.python.parser import DaceProgram

import gnnperf
from gnnperf.backends.folder import REPORT, load_script
from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.frontends.dace.aliases import overlaps
from gnnperf.frontends.dace.reading import parse
from gnnperf.session import Session

LOG = logging.getLogger("gnnperf")
Call = Callable[..., Any]


class TunedProgram:
    """A DaCe program that is tuned for the shapes and types of its arguments, once for each.

    The first call with new ones takes seconds to minutes: it measures candidates with the arguments that it
    was given, as `gnnperf retrieve` does. What is found is compiled into a folder of the user's cache and
    used by later calls and processes on machines of the same kind. On any trouble, and where an argument is
    not what the compiled program expects, the plain program runs; the logger "gnnperf" says why.
    """

    def __init__(self, program: DaceProgram, k: int, session: Session, cache: Path | None = None) -> None:
        functools.update_wrapper(self, program.f)
        self.program, self.k, self.session = program, k, session
        self.cache = cache or user_cache()
        self._calls: dict[str, Call | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            given = self._given(args, kwargs)
            names = self.program.argnames
            kinds = {name: _kind(value, name in names) for name, value in sorted(given.items())}
            # What is compiled for arrays apart is wrong for those that share memory.
            key = json.dumps([kinds, *overlaps(dict(sorted(given.items())))])
        except Exception as error:
            LOG.info("%s: not tuned: %s", self.program.f.__name__, error)
            return self.program(*args, **kwargs)
        if key not in self._calls:
            try:
                self._calls[key] = self._prepare(given, key)
            except Exception as error:  # the program matters more than its speed
                LOG.warning("%s: not tuned, the plain program runs: %s", self.program.f.__name__, error)
                self._calls[key] = None
        call = self._calls[key]
        return self.program(*args, **kwargs) if call is None else call(given)

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name; symbols may be among the keywords."""
        names = self.program.argnames
        if len(args) > len(names) or set(names[: len(args)]) & kwargs.keys():
            raise InputError("the arguments do not match the program's")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if missing := [name for name in names if name not in given]:
            raise InputError(f"no value for {missing[0]}")
        for name, value in given.items():
            if not isinstance(value, np.ndarray | np.generic | int | float | complex):
                raise InputError(f"{name} is a {type(value).__name__}, not an array or a number")
        return given

    def _prepare(self, given: Mapping[str, Any], key: str) -> Call:
        """The compiled program for arguments of these kinds: out of the cache, or tuned now."""
        arrays = {name: value for name, value in given.items() if name in self.program.argnames}
        symbols = {name: value for name, value in given.items() if name not in arrays}
        parsed = parse(self.program, arrays, symbols)
        sdfg, closure = parsed.sdfg, parsed.closure
        symbols = {name: value for name, value in symbols.items() if name not in parsed.sizes}
        about = [sdfg.hash_sdfg(), key, describe_host().fingerprint, gnnperf.__version__, self.k]
        name = self.program.f.__name__
        folder = self.cache / f"{name}-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]}"
        if not (folder / REPORT).is_file():
            LOG.info("%s: tuning for %s", name, key)
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.cache, prefix=".tuning-") as scratch:
                new = Path(scratch) / "program"
                new.mkdir()
                sdfg.name = name
                self.session.retrieve(sdfg, k=self.k, sizes=symbols, inputs={**closure, **arrays}).save(new)
                if not (folder / REPORT).is_file():  # else another process was faster
                    shutil.rmtree(folder, ignore_errors=True)  # what somebody left without its report
                    new.rename(folder)
        return _loaded(folder, closure)


def _kind(value: Any, argument: bool) -> Any:
    """What of a value the compiled program depends on. Integers may be sizes, and what is no argument is a
    symbol: these are compiled in."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, value.strides]
    if isinstance(value, int | np.integer) or not argument:
        return value.item() if isinstance(value, np.generic) else value
    return type(value).__name__


def _loaded(folder: Path, closure: Mapping[str, Any]) -> Call:
    """Call what `gnnperf retrieve --output` wrote with arguments by name."""
    script = load_script(folder)
    return lambda given: script.call(**{**closure, **given})


def user_cache() -> Path:
    """$GNNPERF_CACHE, else in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("GNNPERF_CACHE") or Path(base).expanduser() / "gnnperf" / "programs")


@overload
def tuned(program: Callable[..., Any], /) -> TunedProgram: ...
@overload
def tuned(
    *, k: int = ..., checkpoint: Path | None = ..., store: str | None = ..., remember: bool = ...,
    cache: Path | None = ...,
) -> Callable[[Callable[..., Any]], TunedProgram]: ...  # fmt: skip
def tuned(
    program: Callable[..., Any] | None = None, /, *, k: int = 3, checkpoint: Path | None = None,
    store: str | None = None, remember: bool = True, cache: Path | None = None,
) -> Any:  # fmt: skip
    """Decorate a `@dace.program`, or a function that becomes one, to be tuned when it is first called.

    Args:
        program: what is decorated; with options, leave it out: `@gnnperf.tuned(k=5)`.
        k: candidates measured per nest.
        checkpoint: a bundle; None for the released one.
        store: the user's store, a folder or URI; None for the default one.
        remember: False searches the released store alone and remembers nothing.
        cache: folder of compiled programs; None for `user_cache()`.

    Example:
        @gnnperf.tuned
        @dace.program
        def scale(a: dace.float64, x: dace.float64[N], y: dace.float64[N]):
            y[:] = a * x
    """
    if k < 1:
        raise InputError(f"tuned: expected k of at least 1, got {k}")

    def decorate(function: Callable[..., Any]) -> TunedProgram:
        whole = function if isinstance(function, DaceProgram) else dace.program(function)
        session = Session(checkpoint, store if remember else False, LOG.info)
        return TunedProgram(whole, k, session, cache)

    return decorate if program is None else decorate(program)
