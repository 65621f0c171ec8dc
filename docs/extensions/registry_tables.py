"""Tables that are read off the code when the pages are built, so that they cannot go stale.

```{graph-fields} node      the fields of nodes; edge, graph
```{cost-fields} statement  the cost fields of statements; access, loop
```{graph-words}            the closed vocabularies, and how words share a class of the encoding
```{recipe-orders}          the loop orders that recipes may name
```{recipe-fields}          the fields of recipes with their types and defaults
```{device-fields}          the fields of a device description with the units they may be given in
```{collect-defaults}       the settings of corpora with their defaults
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from gnnperf.corpus.config import NestConfig
from gnnperf.devices import DeviceSpec
from gnnperf.devices.quantity import units_of
from gnnperf.graph.costs import ACCESS_COSTS, LOOP_COSTS, STATEMENT_COSTS
from gnnperf.graph.fields import FIELDS, Field, Level
from gnnperf.graph.vocabulary import ANNOTATIONS, DTYPES, LOOP_KINDS, OPERATIONS, REDUCTIONS
from gnnperf.schedules.recipes.recipe import ORDERS, Recipe

Row = Sequence[str]


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def graph_fields(level: str) -> tuple[Row, list[Row]]:
    assert level in FIELDS, f"expected node, edge or graph, got {level!r}"
    known: Level = level  # type: ignore[assignment]
    rows = [(code([f.name]), code(f.kinds), f.unit, _type(f), f.meaning) for f in FIELDS[known]]
    return ("field", "of", "unit", "type", "meaning"), rows


def _type(field: Field) -> str:
    if field.type != "category" or len(field.choices) > 9:
        return field.type
    return code(field.choices)


def cost_fields(of: str) -> tuple[Row, list[Row]]:
    known = {"statement": STATEMENT_COSTS, "access": ACCESS_COSTS, "loop": LOOP_COSTS}
    assert of in known, f"expected {', '.join(known)}, got {of!r}"
    rows = [(code([f.name]), f.unit, f.scale, f.meaning) for f in known[of]]
    return ("field", "unit", "as", "meaning"), rows


def graph_words(_: str) -> tuple[Row, list[Row]]:
    rows: list[Row] = [("loop kinds", code(LOOP_KINDS)), ("annotations", code(ANNOTATIONS))]
    rows.append(("reductions", code(REDUCTIONS)))
    for what, words in (("types", DTYPES), ("operations", OPERATIONS)):
        for group in dict.fromkeys(words.values()):
            rows.append((f"{what}: {group}", code(w for w, g in words.items() if g == group)))
    return ("what", "words"), rows


def recipe_orders(_: str) -> tuple[Row, list[Row]]:
    return ("order", "loops, outermost first"), [(code([n]), " ".join(o)) for n, o in ORDERS.items()]


def recipe_fields(_: str) -> tuple[Row, list[Row]]:
    rows = [
        (code([f.name]), _annotation(f.type), code([repr(f.default)])) for f in dataclasses.fields(Recipe)
    ]
    return ("field", "values", "default"), rows


def device_fields(_: str) -> tuple[Row, list[Row]]:
    rows = []
    for field in dataclasses.fields(DeviceSpec):
        if field.name == "provenance":
            continue
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        number = field.type in ("int", "int | None", "float", "float | None")
        units = code(units_of(field.name)) if number else ""
        rows.append((code([field.name]), _annotation(field.type), units, "yes" if missing else ""))
    return ("field", "values", "units", "required"), rows


def collect_defaults(_: str) -> tuple[Row, list[Row]]:
    settings = [f for f in dataclasses.fields(NestConfig) if f.default is not dataclasses.MISSING]
    return ("setting", "default"), [(code([f.name]), code([repr(f.default)])) for f in settings]


def _annotation(written: object) -> str:
    return str(written).removeprefix("Literal[").removesuffix("]").replace(" | None", "").replace('"', "")


TABLES: dict[str, Callable[[str], tuple[Row, list[Row]]]] = {
    "graph-fields": graph_fields,
    "cost-fields": cost_fields,
    "graph-words": graph_words,
    "recipe-orders": recipe_orders,
    "recipe-fields": recipe_fields,
    "device-fields": device_fields,
    "collect-defaults": collect_defaults,
}


class RegistryTable(SphinxDirective):
    """One of TABLES, as a table whose cells are Markdown."""

    optional_arguments = 1
    tables: ClassVar = TABLES

    def run(self) -> list[nodes.Node]:
        head, rows = self.tables[self.name](self.arguments[0] if self.arguments else "")
        lines = [head, ["---"] * len(head), *rows]
        text = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in lines)
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> dict[str, bool]:
    for name in TABLES:
        app.add_directive(name, RegistryTable)
    return {"parallel_read_safe": True}
