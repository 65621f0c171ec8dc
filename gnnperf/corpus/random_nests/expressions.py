"""Random arithmetic over loads, for random nests: bounded for inputs in [0.1, 1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


class RandomExpressions:
    """Draws expressions of one element type ("float32", ..., "int64")."""

    def __init__(self, rng: Random, dtype: str) -> None:
        self.rng, self.dtype = rng, dtype
        self.integer = dtype.startswith("int")

    def constant(self) -> str:
        if self.integer:
            return str(self.rng.randint(1, 4))
        value = f"{self.rng.uniform(0.1, 0.9):.3f}"
        return f"np.float32({value})" if self.dtype == "float32" else value

    def combine(self, loads: Sequence[str], plain: bool = False) -> tuple[list[str], str]:
        """Statements inside a loop, and the name of the value they compute from all of `loads`. `plain`:
        products and sums only, as long sums of anything else lose their digits."""
        lines = [f"v0 = {self._unary(loads[0], plain)}"]
        for number, load in enumerate(loads[1:], start=1):
            lines.append(f"v{number} = {self._binary(f'v{number - 1}', load, plain)}")
        return lines, f"v{len(loads) - 1}"

    def of_arrays(self, names: Sequence[str]) -> str:
        """One expression over whole arrays of equal shape."""
        value = self._unary(names[0], plain=self.integer)
        for name in names[1:]:
            value = self.rng.choice((f"{value} * {name}", f"{value} + {name}", f"{value} - 2 * {name}"))
        return value

    def _unary(self, a: str, plain: bool) -> str:
        c = self.constant()
        forms = [f"{a} * {c}"]
        if not plain:
            forms += (
                [f"{a} ^ {c}", f"({a} + {c}) >> 1", f"{a} * {a}"]
                if self.integer
                else [f"np.exp(-{a})", f"np.sqrt({a} * {a} + {c})", f"{a} * {a}", f"{c} + {a} * {a}"]
            )
        return self.rng.choice(forms)

    def _binary(self, a: str, b: str, plain: bool) -> str:
        c = self.constant()
        forms = [f"{a} * {b}", f"{a} + {c} * {b}"]
        if not plain:
            forms += [f"{a} - {b}", f"min({a}, {b})", f"max({a}, {c} * {b})"]
            forms += [f"{a} & {b}", f"{a} ^ {b}"] if self.integer else [f"{a} / ({b} * {b} + {c})"]
        return self.rng.choice(forms)
