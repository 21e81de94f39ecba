"""Sphinx extension: the reference pages, written from the code when the site is built.

One function per page returns its reStructuredText: methods, metrics, packages, datasets, commands.
Each class and function that they list gets a page from autosummary (``docs/_templates``), to which `notes` adds what
the docstring cannot know. The pages are written to ``docs/reference/generated`` and are not committed.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES: dict[str, Callable[[], str]] = {}

FAMILIES = {
    "transformation": "Problem transformation",
    "ensembles": "Ensembles",
    "stacking": "Stacking",
    "neighbours": "Neighbours and prototypes",
    "elm": "Extreme learning machines",
    "networks": "Neural networks",
    "bayes": "Naive Bayes",
    "forests": "Forests",
    "reduction": "Dimensionality reduction",
    "selection": "Feature selection",
    "sampling": "Resampling",
    "decision": "Decisions",
}
LABELS = ("a", "b", "c", "d")
TRUTH = ((1, 1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 0))
SCORES = ((0.9, 0.4, 0.4, 0.1), (0.7, 0.7, 0.2, 0.3), (0.2, 0.4, 0.1, 0.1))


def page(function: Callable[[], str]) -> Callable[[], str]:
    """Register a function that returns a page under its name."""
    PAGES[function.__name__] = function
    return function


def setup(app: Any) -> dict[str, Any]:
    """Write the pages before Sphinx looks for its sources."""
    app.connect("config-inited", prepare)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip_inherited)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def prepare(app: Any, config: Any) -> None:
    """Write the pages, and hand to autosummary's template what it shows of each class and function."""
    config.autosummary_generate = [f"reference/generated/{name}.rst" for name in PAGES]
    config.autosummary_context = {"notes": notes()}
    write_pages(ROOT / "docs" / "reference" / "generated", config.autosummary_context["notes"])


def skip_inherited(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that a class inherits from scikit-learn and from Python."""
    module = getattr(getattr(thing, "fget", thing), "__module__", None) or "multilab"
    return True if what in ("class", "exception") and not module.startswith("multilab") else None


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars of norms such as |W|, which would be substitutions; formulas and code keep theirs."""
    inside = None  # indentation of the directive that the line belongs to
    for position, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent <= inside:
            inside = None
        if inside is None and re.match(r"\s*(\.\. (math|code-block)::|>>>)", line):
            inside = indent
        if inside is None:
            pieces = re.split(r"(``[^`]*``|`[^`]*`)", line)
            lines[position] = "".join(p if i % 2 else p.replace("|", r"\|") for i, p in enumerate(pieces))


def write_pages(folder: Path, members: Iterable[str]) -> None:
    """Write every page whose text has changed, and remove those that no longer exist, of members too."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: function() for name, function in PAGES.items()}
    for path in folder.glob("*.rst"):
        if path.stem not in {*texts, *members}:
            path.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


# ---------------------------------------------------------------- pieces of reStructuredText


def heading(text: str, line: str = "=") -> str:
    """Return a heading."""
    return f"{text}\n{line * len(text)}\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: str = "auto") -> str:
    """Return a list table."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        for position, cell in enumerate(row):
            text = " ".join(str(cell).split()) or r"\ "
            lines.append(f"   {'* -' if position == 0 else '  -'} {text}")
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return ordinary text with the characters escaped that mean something in reStructuredText; code is kept."""
    pieces = re.split(r"(``[^`]*``|`[^`]*`)", " ".join(text.split()))
    for position, piece in enumerate(pieces):
        if position % 2:
            pieces[position] = f"``{piece.strip('`')}``"
        else:
            pieces[position] = re.sub(r"([\\*_|`])", r"\\\1", piece)
    return "".join(pieces)


def first_sentence(thing: Any) -> str:
    """Return the first paragraph of a docstring, as text without roles."""
    text = inspect.cleandoc(inspect.getdoc(thing) or "").partition("\n\n")[0]
    return plain(re.sub(r":\w+:`~?\.?([\w.]*?)(\w+)`", r"`\2`", text))


def code(text: str, language: str = "text") -> str:
    """Return a block of code."""
    body = "\n".join(f"   {line}".rstrip() for line in text.strip("\n").splitlines())
    return f".. code-block:: {language}\n\n{body}\n"


def setting(value: Any) -> str:
    """Return a value of a YAML file as code."""
    return f"``{yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix('...' + chr(10)).strip()}``"


# ---------------------------------------------------------------- methods


def families() -> dict[str, list[type]]:
    """Return the estimator classes of each family."""
    from multilab.methods import all_estimators

    classes: dict[str, list[type]] = {}
    for cls in all_estimators():
        _, package, family, *_ = cls.__module__.split(".")
        classes.setdefault(family if package == "methods" else package, []).append(cls)
    known = [name for name in FAMILIES if name in classes]
    return {name: classes[name] for name in [*known, *sorted(set(classes) - set(known))]}


def method_files() -> dict[str, dict[str, Any]]:
    """Return the method files of ``conf/method`` by name."""
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "conf" / "method").glob("*.yaml"))}


def targets(settings: Any) -> list[str]:
    """Return the classes that a method file names, those of its pipeline's steps included."""
    if isinstance(settings, dict):
        own = [settings["_target_"]] if isinstance(settings.get("_target_"), str) else []
        return own + [name for value in settings.values() for name in targets(value)]
    if isinstance(settings, list):
        return [name for value in settings for name in targets(value)]
    return []


def used_by(cls: type, files: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of the method files that use a class."""
    return [name for name, settings in files.items() if any(t.endswith(f".{cls.__name__}") for t in targets(settings))]


def capabilities(cls: type, files: dict[str, dict[str, Any]]) -> list[str]:
    """Return a row of the capability table: what the tags, the methods and the method files say."""
    from sklearn.utils import get_tags

    estimator: Any = cls()
    tags, parameters, names = get_tags(estimator), estimator.get_params(deep=False), used_by(cls, files)
    scores = {"predict_proba": "probabilities", "decision_function": "margins"}
    kinds = {"transform": "transformer", "fit_resample": "sampler"}
    kind = next((text for name, text in kinds.items() if hasattr(estimator, name)), "classifier")
    return [
        f":class:`~{public_name(cls)}`",
        kind,
        "yes" if tags.input_tags.sparse else "no",
        "yes" if tags.input_tags.allow_nan else "no",
        takes_weights(cls, estimator),
        learns_from_missing(cls),
        learns_from_batches(cls, tags),
        ", ".join(text for name, text in scores.items() if hasattr(estimator, name)) or "–",
        "yes" if "random_state" in parameters else "no",
        "yes" if "n_jobs" in parameters else "no",
        ", ".join(f"``{name}``" for name in names) or "–",
        "yes" if any(files[name].get("search") for name in names) else "no",
    ]


def takes_weights(cls: type, estimator: Any) -> str:
    """Return whether ``fit`` takes weights of rows, and of the labels of each row."""
    from sklearn.utils.validation import has_fit_parameter

    if not has_fit_parameter(estimator, "sample_weight"):
        return "no"
    return "yes, also (n, q)" if getattr(estimator, "_accepts_cell_weights", False) else "yes"


def learns_from_missing(cls: type) -> str:
    """Return whether a class learns from partially observed labels; of some its members decide."""
    accepts = getattr(cls, "_accepts_missing_labels", False)
    return "if its members do" if isinstance(accepts, property) else "yes" if accepts else "no"


def learns_from_batches(cls: type, tags: Any) -> str:
    """Return whether a class learns from batches of rows; of some the arguments decide."""
    if getattr(tags, "learns_from_batches", False):
        return "yes"
    return "with some arguments" if hasattr(cls, "fit_batches") else "no"


@page
def methods() -> str:
    """Return the page of methods: one capability table per family."""
    files, by_family = method_files(), families()
    header = [
        "Estimator",
        "Kind",
        "Sparse X",
        "NaN in X",
        "Weights",
        "Missing labels",
        "Batches",
        "Scores",
        "Random",
        "``n_jobs``",
        "Method files",
        "Search space",
    ]
    parts = [
        heading("Methods"),
        f"{sum(map(len, by_family.values()))} estimators in the style of scikit-learn and {len(files)} method files "
        "(``conf/method``) that use them. ``from multilab.methods import MLkNN`` imports an estimator; ``multilab "
        "methods show mlknn`` prints a method file.\n",
        "Each family has a line per estimator and a table of what it accepts. *Weights*: ``fit`` takes "
        "``sample_weight`` (of wrappers: if the base estimator does), *(n, q)*: also one for each label of a row. "
        "*Missing labels*: it learns from partially observed ones (:doc:`/guide/missing-labels`). "
        "*Batches*: it learns from batches of rows "
        "(:doc:`/guide/many-labels`). *Scores*: probabilities (``predict_proba``) or margins "
        "(``decision_function``). *Random*: there is a ``random_state``. *Search space*: ``multilab tune`` has one.\n",
    ]
    for family, classes in by_family.items():
        parts += [
            heading(FAMILIES.get(family, family.capitalize()), "-"),
            listing(map(public_name, classes)),
            ".. container:: ledger\n",
            textwrap.indent(table(header, [capabilities(c, files) for c in classes]), "   "),
        ]
    return "\n".join([*parts, heading("All of them", "-"), listing(exported("methods"))])


def public_name(cls: type) -> str:
    """Return the name under which an estimator is imported."""
    return f"multilab.{'decision' if cls.__module__.startswith('multilab.decision') else 'methods'}.{cls.__name__}"


def method_file(name: str, settings: dict[str, Any]) -> str:
    """Return what a method file sets: title, search space, notes and reference."""
    lines = [f"**Method file** ``{name}`` ({plain(str(settings.get('title', name)))})"]
    if settings.get("base_scores"):
        lines.append(f"Input: out-of-fold scores of {', '.join(f'``{base}``' for base in settings['base_scores'])}.")
    if settings.get("search"):
        spaces = "; ".join(f"``{key}`` {setting(space)}" for key, space in settings["search"].items())
        lines.append(f"Search space: {spaces}.")
    if settings.get("notes"):
        lines.append(plain(settings["notes"]))
    if settings.get("reference"):
        lines.append(f"*Reference.* {plain(settings['reference'])}")
    return "\n\n".join(lines) + "\n"


# ---------------------------------------------------------------- metrics


@page
def metrics() -> str:
    """Return the page of metrics: definitions, and one worked example of three rows under every convention."""
    from multilab import metrics as package

    defined, values = package.registry.ALL_METRICS, worked_example()
    rows = [
        [f"row {i + 1}", *(f"{'**' * y}{s}{'**' * y}" for y, s in zip(truth, scores, strict=True))]
        for i, (truth, scores) in enumerate(zip(TRUTH, SCORES, strict=True))
    ]
    parts = [
        heading("Metrics"),
        "Each metric is one function with one definition; a *convention* settles what the definition leaves open: "
        "ties between scores, rows without relevant labels, labels that never occur. "
        ":func:`~multilab.metrics.score_all` computes several at once. "
        "The guide says :doc:`which metric answers which question </guide/metrics>`.\n",
        heading("The worked example", "-"),
        "Three rows, four labels; relevant labels are bold, a label is predicted where its score is at least 0.5. "
        "Row 1 ties a relevant with an irrelevant label, row 2 ties the two highest scores, row 3 has no relevant "
        "label and no predicted one.\n",
        table(["Scores", *LABELS], rows),
        "The same three rows under each convention; values that differ from ``default`` are bold. *nan*: no value is "
        "defined.\n",
        table(["Metric", *(f"``{preset}``" for preset in values)], [example_row(name, values) for name in defined]),
    ]
    parts += [
        heading("All metrics", "-"),
        listing(f"multilab.metrics.{name}" for name in defined),
        heading("All metrics at once, conventions, intervals", "-"),
        listing(name for name in exported("metrics") if name.rpartition(".")[2] not in defined),
    ]
    return "\n".join(parts)


OBSERVED = {
    "rows": "Missing labels: a mean over rows, each measured over its observed labels.",
    "labels": "Missing labels: a mean over labels, each measured over the rows that observe it.",
    "cells": "Missing labels: computed from the observed cells.",
}


def worked_example() -> dict[str, dict[str, float]]:
    """Return the value of every metric in the example, by convention."""
    from multilab.metrics import PRESETS, registry, score_all

    return {p: score_all(TRUTH, SCORES, conventions=p, metrics=registry.ALL_METRICS) for p in PRESETS}


def example_row(name: str, values: dict[str, dict[str, float]]) -> list[str]:
    """Return a row of the table of the worked example; what differs from the default is bold."""
    shown = {preset: f"{measured[name]:.4f}" for preset, measured in values.items()}
    default = shown["default"]
    cells = [text if text == default else f"**{text}**" for text in shown.values()]
    return [f":func:`{name} <multilab.metrics.{name}>`", *cells]


def metric_facts(name: str, metric: Any, values: dict[str, dict[str, float]]) -> str:
    """Return the definition of one metric and its value in the example, by convention."""
    from multilab.metrics import METRICS
    from multilab.metrics.registry import GROUPS

    by_value: dict[str, list[str]] = {}
    for preset, measured in values.items():
        by_value.setdefault(f"{measured[name]:.4f}", []).append(f"``{preset}``")
    worked = "; ".join(f"{value} ({', '.join(names)})" for value, names in by_value.items())
    facts = [
        f"{plain(metric.title)}: {plain(metric.definition)}.",
        f"{'Larger' if metric.direction == 'max' else 'Smaller'} is better; range {metric.low:g} to {metric.high:g}; "
        f"computed from {metric.needs}." + (" Recorded in every study." if name in METRICS else ""),
        *([f"Group: {GROUPS[metric.group].lower()}."] if metric.group else []),
        *([f"Orders methods as :func:`~multilab.metrics.{metric.ordered_like}` does."] if metric.ordered_like else []),
        *([OBSERVED[metric.mean_over]] if metric.mean_over else []),
        f"Source: {plain(metric.source)}.",
        f":doc:`Worked example <metrics>`: {worked}.",
    ]
    if metric.skips:
        facts.append(f"Some conventions leave {metric.skips} out of the mean; ``n_skipped_{name}`` counts them.")
    return heading("Definition", "-") + "\n" + "\n".join(f"- {fact}" for fact in facts) + "\n"


# ---------------------------------------------------------------- datasets


@page
def datasets() -> str:
    """Return the page of data sets: a table of all cards, then each card's sources, licence and notes."""
    folder = ROOT / "conf" / "dataset"
    cards = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))}
    rows = [
        [
            f":ref:`{name} <dataset-{name}>`",
            *(
                str((card.get("expected") or {}).get(key, "–"))
                for key in ("instances", "features", "labels", "cardinality")
            ),
            "generated" if card.get("generator") else "files" if card.get("files") else "not available",
        ]
        for name, card in cards.items()
    ]
    parts = [
        heading("Data sets"),
        f"{len(cards)} cards (``conf/dataset``). A card names the files, their checksums and their address; data are "
        "fetched and verified when they are first used, and none is part of the package. *Generated* sets need no "
        "file and no network. ``multilab datasets show NAME`` prints a card; your own files: :doc:`/guide/own-data`.\n",
        table(["Name", "Instances", "Features", "Labels", "Cardinality", "Data"], rows),
    ]
    for name, card in cards.items():
        parts += [f".. _dataset-{name}:\n", heading(name, "-"), card_entry(card)]
    return "\n".join(parts)


def card_entry(card: dict[str, Any]) -> str:
    """Return what a card states."""
    lines = [f"**{plain(str(card.get('title', '')))}**"]
    for key in ("citation", "licence", "upstream", "notes", "unavailable", "reason"):
        if isinstance(card.get(key), str):
            lines.append(f"*{key.capitalize()}.* {plain(card[key])}")
    sources = sorted({str(file["repository"]) for file in card.get("files", []) if file.get("repository")})
    if sources:
        lines.append(f"*Files from* {', '.join(sources)}, pinned by commit and checksum.")
    return "\n\n".join(lines) + "\n"


# ---------------------------------------------------------------- commands


@page
def commands() -> str:
    """Return the page of commands: those of the parser, with their options."""
    from multilab.cli.main import root

    parts = [heading("Commands"), "Every command explains itself: ``multilab COMMAND --help``.\n"]
    for words, command in commands_of(root):
        hidden = ["Called by DVC.\n"] if command.hidden else []
        line = "-" if len(words) == 1 else "~"
        name = f"multilab {' '.join(words)}"
        parts += [heading(name, line), *hidden, *described(command, name)]
    return "\n".join(parts)


def commands_of(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the commands below a group with the words that call them; those that only DVC calls are last."""
    context = click.Context(group)
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    for name, command in sorted(((n, c) for n, c in found if c), key=lambda one: one[1].hidden):
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands_of(command, (*words, name))


def described(command: click.Command, name: str) -> list[str]:
    """Return the text of a command, its examples as code, and a table of its options."""
    context = click.Context(command, info_name=name)
    parts = [code(command.get_usage(context).removeprefix("Usage: "))]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        literal = paragraph.removeprefix("\b\n")
        parts.append(code(literal) if literal != paragraph else plain(paragraph) + "\n")
    records = [p.get_help_record(context) for p in command.params]
    rows = [(f"``{option}``", plain(text)) for option, text in filter(None, records) if text]
    return [*parts, *([table(("option", "meaning"), rows)] if rows else [])]


# ---------------------------------------------------------------- packages, and a page per class and function

PACKAGES = {
    "comparison": "From a table to a model",
    "cells": "A method as one estimator",
    "models": "Saved models",
    "decision": "Decisions",
    "datasets": "Reading and describing data",
    "model_selection": "Splitters and stored splits",
    "statistics": "Comparisons over data sets",
    "papers": "Results and verdicts in notebooks",
    "printed": "Printed results of papers",
    "reports": "Reports and figures",
    "testing": "Checks of estimators",
    "mlflow_metrics": "Evaluation with MLflow",
}


def package_page(name: str) -> str:
    """Return the page of what a package exports besides estimators and metrics."""
    about = f"``multilab.{name}``: {first_sentence(import_module(f'multilab.{name}'))}\n"
    return "\n".join([heading(PACKAGES[name]), about, listing(exported(name))])


PAGES |= {f"multilab.{name}": partial(package_page, name) for name in PACKAGES}


def exported(name: str) -> list[str]:
    """Return the names of the functions and classes of a package, as they are best imported; estimators apart."""
    import multilab

    package, estimators = import_module(f"multilab.{name}"), {cls.__name__ for cls in families().get(name, [])}
    members = [m for m in package.__all__ if callable(getattr(package, m)) and m not in estimators]
    return [f"multilab.{m}" if m in multilab.__all__ else f"multilab.{name}.{m}" for m in members]


def public_names() -> list[str]:
    """Return what the reference lists, as it is imported or typed, and the methods of extras that are not installed."""
    from multilab.cli.main import root
    from multilab.methods.discovery import find_class, public_classes

    names = set(re.findall(r"^   ~(multilab\.\S+)$", "\n".join(text() for text in PAGES.values()), re.MULTILINE))
    names |= {f"multilab {' '.join(words)}" for words, command in commands_of(root) if not command.hidden}
    for name in public_classes():
        try:
            find_class(name)
        except ImportError:
            names.add(f"multilab.methods.{name}")
    return sorted(names)


def listing(names: Iterable[str]) -> str:
    """Return a table of names with a line each; autosummary writes a page per name."""
    return ".. autosummary::\n   :toctree: .\n   :nosignatures:\n\n" + "".join(f"   ~{name}\n" for name in names)


def notes() -> dict[str, str]:
    """Return what the page of a class or function says below its docstring, by name.

    Method files of an estimator, definition of a metric, and the pages of the guide that use it.
    """
    from multilab.metrics.registry import ALL_METRICS

    files, values, guide = method_files(), worked_example(), pages_that_use()
    texts: dict[str, list[str]] = {n: [] for package in ("methods", "metrics", *PACKAGES) for n in exported(package)}
    for cls in (cls for classes in families().values() for cls in classes):
        own = [method_file(name, files[name]) for name in used_by(cls, files)]
        texts[public_name(cls)] = [heading("Method files", "-"), *own] if own else []
    texts |= {f"multilab.metrics.{name}": [metric_facts(name, metric, values)] for name, metric in ALL_METRICS.items()}
    for name, parts in texts.items():
        pages = guide.get(name.rpartition(".")[2])
        parts += [heading("In the guide", "-"), *(f"- :doc:`/{page}`" for page in pages)] if pages else []
    return {name: "\n".join(parts) for name, parts in texts.items()}


def pages_that_use() -> dict[str, list[str]]:
    """Return the written pages by the names that they import, call or set as code."""
    pages: dict[str, list[str]] = {}
    folder = ROOT / "docs"
    for path in sorted([folder / "getting-started.md", *folder.glob("guide/*.md"), *folder.glob("papers/*.md")]):
        text = path.read_text()
        names = set(re.findall(r"\w+", " ".join(re.findall(r"from multilab[\w.]* import ([\w, ]+|\([^)]*)", text))))
        spans = re.findall(r"`~?(?:[\w.]*\.)?(\w+)([`(])", text)
        names |= {name for name, end in spans if end == "(" or "_" in name or not name.islower()}
        for name in names:
            pages.setdefault(name, []).append(path.relative_to(folder).with_suffix("").as_posix())
    return pages


if __name__ == "__main__":
    (ROOT / "docs" / "reference" / "public-names.txt").write_text("\n".join([*public_names(), ""]))
