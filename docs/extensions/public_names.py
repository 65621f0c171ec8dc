"""The public names of gnnperf: which packages there are, what they export, and where each is documented.

The reference has a page for each package of the first level, with those below it:

```{public-names} gnnperf.store

Names are defined in private modules and documented where they are exported, so that references by the
defining module are led there.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import gnnperf

CLI = ("gnnperf.cli", "gnnperf.cli.eval")
REFERENCE = "reference/api/"
"""Folder of the generated part; only there may a type have no page."""


class PublicNames(SphinxDirective):
    """What a package and those below it export."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        top = self.arguments[0]
        found = [name for name in packages() if name == top or name.startswith(f"{top}.")]
        parts = []
        for package in found:
            data = [f".. autodata:: {package}.{name}" for name in data_of(package)]
            body = "\n".join((f".. automodule:: {package}", *data))
            heading = f"## {package}\n\n" if found != [top] else ""
            parts.append(f"{heading}```{{eval-rst}}\n{body}\n```\n")
        return self.parse_text_to_nodes("\n".join(parts), allow_section_headings=True)


def packages() -> list[str]:
    """All packages that export something for Python."""
    found = [m.name for m in pkgutil.walk_packages(gnnperf.__path__, "gnnperf.") if m.ispkg]
    return [name for name in sorted(found) if getattr(import_module(name), "__all__", ()) and name not in CLI]


def data_of(package: str) -> list[str]:
    """Exported data that autodoc does not find: what is described where it is defined, which is elsewhere."""
    module = import_module(package)
    here = {name for _, name in ModuleAnalyzer.for_module(package).find_attr_docs()}
    found = {name: getattr(module, name) for name in module.__all__ if name not in here}
    return [name for name, value in found.items() if not (inspect.isclass(value) or inspect.isroutine(value))]


def exported() -> dict[str, str]:
    """Dotted name by definition -> dotted name by export, of classes and functions."""
    names: dict[str, str] = {}
    for package in ("gnnperf", *packages()):
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                names.setdefault(f"{value.__module__}.{name}", f"{package}.{name}")
    return names


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """References out of signatures: by definition, by bare name, or of other projects, which get no link."""
    if node.get("refdomain") != "py" or not node["refdoc"].startswith(REFERENCE):
        return None
    target = node["reftarget"]
    names = app.env.gnnperf_exported  # type: ignore[attr-defined]
    documented = names.get(target) or next((e for e in names.values() if e.endswith(f".{target}")), None)
    if documented is not None:
        domain = env.get_domain("py")
        found = domain.resolve_any_xref(env, node["refdoc"], app.builder, documented, node, content)
        if found:
            return found[0][1]
    while isinstance(content, addnodes.pending_xref_condition):
        content = content[0]
    return content


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Everything that a package exports is shown, also data that has no docstring where it is exported."""
    package = app.env.temp_data.get("autodoc:module")
    return False if what == "module" and name in getattr(sys.modules[package], "__all__", ()) else None


def describe_data(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Data is described beside its definition, which is not where it is exported."""
    package, _, attribute = name.rpartition(".")
    if what != "data":
        return
    folders = getattr(import_module(package), "__path__", ())  # a module describes its data itself
    for module in pkgutil.walk_packages(folders, f"{package}."):
        if module.name.count(".") == package.count(".") + 1 and module.name in sys.modules:
            found = ModuleAnalyzer.for_module(module.name).find_attr_docs().get(("", attribute))
            if found:
                lines[:] = found


def import_all() -> None:
    """Some packages import a name when it is asked for; autodoc sees only what is there."""
    for package in ("gnnperf", *packages()):
        module = import_module(package)
        for name in module.__all__:
            setattr(module, name, getattr(module, name))


def prepare(app: Sphinx, env: BuildEnvironment, docnames: Any) -> None:
    import_all()
    env.gnnperf_exported = exported()  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    app.connect("env-before-read-docs", prepare)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", describe_data, priority=300)
    return {"parallel_read_safe": True}
