"""How the documentation site is built: `make docs`. Nothing is fetched while it is built or read."""

import re
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project, author = "UpperTail", "The UpperTail developers"
project_copyright = "The UpperTail developers"
release = version = installed_version("uppertail")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "myst-nb"}
suppress_warnings = ["mystnb.unknown_mime_type"]

myst_enable_extensions = ["colon_fence", "attrs_inline", "dollarmath"]
myst_dmath_allow_space = False  # prices and shell variables are no formulas
myst_heading_anchors = 3

nb_execution_mode = "cache"
nb_execution_timeout = 1800  # of one cell, on a machine that is busy
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"  # how long a machine takes to compile is no part of a page
nb_number_source_lines = False

default_role = "code"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes are long; what a setting may be stands in its description
autodoc_class_signature = "mixed"
autodoc_inherit_docstrings = False
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"UpperTail {release}"
html_static_path = ["_static"]
html_css_files = ["uppertail.css"]
html_show_sourcelink = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"


def without_folders(app: Any, page: str, source: list[str]) -> None:
    """Links into the repository's folders become plain names: they are not part of the site."""
    here = (DOCS / page).parent

    def shown(found: re.Match[str]) -> str:
        text, target = found["text"].strip("`"), (here / found["target"]).resolve()
        inside = target.is_relative_to(DOCS) or target in (ROOT / "CHANGELOG.md",)
        picture = target.suffix in (".png", ".svg", ".gif")
        return found[0] if inside or picture or not target.is_relative_to(ROOT) else f"`{text}`"

    source[0] = re.sub(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>\.\.?/[^)#]+)\)", shown, source[0])


def mathml(as_block: bool) -> tuple[Any, None]:
    """Writes a formula as MathML, which browsers show by themselves; one that cannot be read ends the build."""

    def visit(writer: Any, node: Any) -> None:
        writer.body.append(tex2mathml(node.astext(), as_block=as_block))
        raise SkipNode

    return visit, None


def setup(app: Any) -> None:
    """Adds what this file defines."""
    app.add_html_math_renderer("mathml", mathml(as_block=False), mathml(as_block=True))
    app.connect("source-read", without_folders)
