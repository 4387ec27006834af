"""Sphinx: `python -m sphinx -W docs build/docs` (needs the extra `docs`).

It needs no network: names of scikit-learn's documentation that ours refers to are listed below. If SVMOSAIC_DOCS_ONLINE
is set, all names of other packages link to their documentation.
"""

import contextlib
import io
import os
import re
import zlib
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import svmosaic
from svmosaic.cli import COMMANDS, main

HERE = Path(__file__).parent

project = "svmosaic"
author = copyright = "the svmosaic developers"
release = svmosaic.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "svmosaic"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["wide.css"]
exclude_patterns = ["auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.zip", "generated/*.txt"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_extra_path = ["playground"]  # a page of its own, playground.html, next to the others


def help_of(command):
    """What `svmosaic COMMAND --help` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    return printed.getvalue()


def help_pages():
    """The help of all commands, a section each."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    return "\n".join(f"### svmosaic {name}\n\n```text\n{help_of(name)}```\n" for name in COMMANDS)


_generated = HERE / "generated"
_generated.mkdir(exist_ok=True)
(_generated / "cli.txt").write_text(help_pages(), encoding="utf-8")

# What scikit-learn's docstrings, which ours inherit, and our own refer to on its site: name, role, page, title.
SKLEARN = """\
accuracy_score std:label modules/model_evaluation.html#accuracy-score Accuracy score
metadata_routing std:label metadata_routing.html#metadata-routing Metadata Routing
df_output_transform std:label modules/df_output_transform.html#df-output-transform Pandas/Polars output
r2_score std:label modules/model_evaluation.html#r2-score R² score
sphx_glr_auto_examples_miscellaneous_plot_set_output.py std:label auto_examples/miscellaneous/plot_set_output.html -
meta-estimator std:term glossary.html#term-meta-estimator -
"""


def inventory(project, names):
    """An inventory that intersphinx reads."""
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version:\n"
    head += "# The remainder of this file is compressed using zlib.\n"
    lines = (line.split(" ", 3) for line in names.splitlines())
    body = "".join(f"{name} {role} -1 {page} {title}\n" for name, role, page, title in lines)
    return head.encode() + zlib.compress(body.encode())


(_generated / "sklearn.inv").write_bytes(inventory("scikit-learn", SKLEARN))
_sklearn = str(_generated / "sklearn.inv")
intersphinx_timeout = 10
intersphinx_mapping = {"sklearn": ("https://scikit-learn.org/stable", _sklearn)}
if os.environ.get("SVMOSAIC_DOCS_ONLINE"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", (None, _sklearn)),
        "pandas": ("https://pandas.pydata.org/docs", None),
    }

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False


def described(fullname, names):
    """Those attributes of a class that have a description of their own; others are in its docstring, or parameters."""
    module, _, name = fullname.rpartition(".")
    thing = getattr(import_module(module), name)
    return [n for n in names if hasattr(type(getattr(thing, n, None)), "__get__") and getattr(thing, n).__doc__]


autosummary_context = {"described": described}
suppress_warnings = ["config.cache"]

# Examples called plot_* are run and shown; the others take minutes or write files.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
    "abort_on_example_error": True,
}

# Names that mean a method, or something else, as often as the function on the page.
UNCLEAR = {"fit", "load", "partial_fit", "predict", "run", "save"}


def public_names():
    """What the API page lists: from the names that pages use to full names. Of equal names, the first counts."""
    found, module = {}, ""
    for line in (HERE / "api.md").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   ([\w.]+)", line):
            full = f"{module}.{match[1]}"
            found[full] = full
            if (short := full.rpartition(".")[2]) not in UNCLEAR:
                found.setdefault(short, full)
    return found


class LinkNames(SphinxTransform):
    """Literals on the pages that are public names, alone or called, link to the API reference."""

    default_priority = 500
    names = public_names()

    def apply(self, **kwargs):
        if self.env.docname.startswith(("generated/", "auto_examples/")):
            return
        for literal in list(self.document.findall(nodes.literal)):
            name = re.sub(r"\(.*\)$", "", literal.astext(), flags=re.S)
            if name in self.names and not self._is_elsewhere(literal, name):
                options = {"refdomain": "py", "reftype": "obj", "reftarget": self.names[name], "refwarn": False}
                link = addnodes.pending_xref("", refdoc=self.env.docname, **options)
                literal.replace_self(link)
                link += literal

    def _is_elsewhere(self, literal, name):
        """Whether it stands in a heading or a link, or is scikit-learn's class of the same name."""
        links = nodes.title | nodes.reference | addnodes.pending_xref
        block = literal.parent
        while not isinstance(block, nodes.paragraph | nodes.document | links):
            block = block.parent
        if isinstance(block, links):
            return True
        if isinstance(block.parent, nodes.entry):
            entry, block = block.parent, block.parent.parent  # a cell, and its row of a table
            if self.env.docname == "coming_from" and block[0] is entry:
                return True  # the first column has what the other library calls so
        return name in ("LinearSVC", "LinearSVR") and "scikit-learn" in block.astext()


def setup(app):
    app.add_transform(LinkNames)
