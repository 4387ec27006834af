"""Sphinx: `python -m sphinx -W docs build/docs` (needs the extra `docs`)."""

from pathlib import Path

import svmosaic
from svmosaic.display import playground_page

project = "svmosaic"
author = "the svmosaic developers"
release = svmosaic.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "svmosaic"
exclude_patterns = ["auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.zip"]

# A page of its own, next to the others.
_pages = Path(__file__).parent / "_pages"
_pages.mkdir(exist_ok=True)
(_pages / "playground.html").write_text(playground_page(), encoding="utf-8")
html_extra_path = ["_pages"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
# Pages link to files of the repository, which are not pages; docstrings taken over from scikit-learn link to its site.
suppress_warnings = ["config.cache", "myst.xref_missing", "ref.term", "ref.ref"]

# Examples called plot_* are run and their pictures shown; the others, which take minutes or real data, are listed.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
}
