"""Settings of the documentation: sphinx-build -n -W --keep-going docs FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "extensions")]

from gnnperf import __version__  # noqa: E402 - the path comes first

project = "gnnperf"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "public_names",
    "plain_docstrings",
    "registry_tables",
]
exclude_patterns = ["extensions"]
nitpicky = True
smartquotes = False  # what is written is what is typed
suppress_warnings = ["config.cache"]  # settings with functions in them; nothing is cached here

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "literal"  # what docstrings put into single backticks is code
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "no-value": True}
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"gnnperf {release}"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False
