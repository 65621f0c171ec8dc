"""DaCe with some of its functions replaced, for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

Repairs = Mapping[tuple[Any, str], Callable[[Any], Any]]
"""By class or module, and name of a function in it: what makes the new function of DaCe's own (of None, where
there is none)."""


@contextmanager
def repaired(repairs: Repairs) -> Iterator[None]:
    """DaCe with these repairs; its own functions again afterwards."""
    with ExitStack() as stack:
        for (owner, name), repair in repairs.items():
            original = vars(owner).get(name)
            setattr(owner, name, repair(original))
            if original is None:
                stack.callback(delattr, owner, name)
            else:
                stack.callback(setattr, owner, name, original)
        yield
