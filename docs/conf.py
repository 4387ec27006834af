"""Sphinx: `python -m sphinx -W docs build/docs` (needs the extra `docs`).

It needs no network. With SVMOSAIC_DOCS_ONLINE=1, names of other packages link to their documentation.
"""

import contextlib
import io
import os
from pathlib import Path

import svmosaic
from svmosaic.cli import COMMANDS, main
from svmosaic.display import playground_page

HERE = Path(__file__).parent

project = "svmosaic"
author = "the svmosaic developers"
release = svmosaic.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "svmosaic"
exclude_patterns = ["auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.zip", "generated/*.txt"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Other packages' documentation, if there is a network and someone asks for it.
if os.environ.get("SVMOSAIC_DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_timeout = 10
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
    }

# A page of its own, next to the others.
_pages = HERE / "_pages"
_pages.mkdir(exist_ok=True)
(_pages / "playground.html").write_text(playground_page(), encoding="utf-8")
html_extra_path = ["_pages"]


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

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
# Docstrings taken over from scikit-learn refer to terms and sections of its site.
suppress_warnings = ["config.cache", "ref.term", "ref.ref"]

# Examples called plot_* are run and their pictures shown; the others, which take minutes or real data, are listed.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
}
