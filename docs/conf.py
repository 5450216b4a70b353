"""Sphinx configuration: MyST pages, the API from docstrings, and warnings as errors."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.ext.napoleon.docstring import GoogleDocstring

import culaunch

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "culaunch"
author = "the culaunch authors"
copyright = "the culaunch authors"
version = release = culaunch.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "generated",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_preprocess_types = True
napoleon_use_rtype = False
# One way for attributes: a class may name a property in its list, too.
napoleon_use_ivar = True

# Napoleon takes what stands before a colon in the docstring of a property for its type.
GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end

# Every reference must resolve, except to types that are not ours or not public.
nitpicky = True
nitpick_ignore_regex = [
    ("py:(class|obj)", r"(?!culaunch\.[A-Za-z]).*"),
    ("py:exc", r"[A-Z]\w*Error"),
    # Those of the driver, of the standard library and of Apache TVM-FFI.
    ("cpp:identifier", r".*"),
    ("py:mod", r"(?!culaunch).*"),
]

autosummary_generate = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["culaunch.css"]
html_title = f"culaunch {version}"
html_show_copyright = False
html_show_sphinx = False


def mark_options(_app, doctree):
    """Give each option of a command (`--chart`) the class that keeps it on one line."""
    for literal in doctree.findall(nodes.literal):
        if literal.astext().startswith("-"):
            literal["classes"].append("command-option")


def setup(app):
    """Keep options on one line, and let the index list pages that a build lacks."""
    app.connect("doctree-read", mark_options)

    def keep_pages_that_exist(app, name, source):
        if name == "index":
            lines = source[0].splitlines()
            lacking = {
                line
                for line in lines
                if re.fullmatch(r"[a-z_/]+", line) and not Path(app.srcdir, f"{line}.md").exists()
            }
            source[0] = "\n".join(line for line in lines if line not in lacking)

    app.connect("source-read", keep_pages_that_exist)
