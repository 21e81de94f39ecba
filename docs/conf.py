"""Sphinx settings of the documentation site (`make docs`); nothing here needs a network."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extensions"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MULTILAB_CELLS", str(HERE / "_build" / "cells"))
os.environ.setdefault("MULTILAB_CACHE", str(HERE / "_build" / "data"))
os.environ["PYTHONWARNINGS"] = "ignore::DeprecationWarning"

import multilab  # noqa: E402

project = "multilab"
author = "The multilab founders"
copyright = author
version = release = multilab.__version__

# The address of the repository is set once, as `Repository` of [project.urls] in pyproject.toml. Without one, the site
# has no link to it. Getting started says how to hand on the source until there is one.
REPOSITORY = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"].get("urls", {}).get("Repository")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
    "multilab_reference",
    "layers_and_files",
    "arena_entrants",
    "scikit_learn_tables",
    "study_figures",
    "site_links",
    "mathml",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_build", "_extensions", "examples", "gallery/*.ipynb"]
nitpicky = False
language = "en"
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "tasklist"]
myst_heading_anchors = 4
# Claims of the notebooks have HTML anchors, which MyST does not know; site_links checks every link of the site.
suppress_warnings = ["myst.xref_missing"]
nb_execution_mode = "off"  # notebooks are committed with their outputs; a test executes them

numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
default_role = "code"  # one pair of backticks in a docstring is code

html_theme = "pydata_sphinx_theme"
html_title = "multilab"
html_static_path = ["_static"]
html_logo = "_static/logo.svg"
html_favicon = "favicon.ico"
html_extra_path = ["favicon.ico"]  # at the root too: browsers ask for it there on pages that name none, the reports
html_css_files = ["multilab.css"]
html_search_scorer = str(HERE / "_extensions" / "search_order.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "logo": {"text": f"multilab {version}", "alt_text": "multilab, first page"},
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-solid fa-code-branch"}] if REPOSITORY else [],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
}
# Pages that are alone in their section need no list of its pages.
html_sidebars = {page: [] for page in ("getting-started", "why", "scaling", "dependencies", "contributing", "glossary")}
html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "backreferences_dir": "reference/generated/examples",
    "doc_module": ("multilab",),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "matplotlib_animations": False,
}
