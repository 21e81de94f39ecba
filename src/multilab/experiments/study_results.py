"""The report folder of a study: what is compared and described."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from multilab.cells.method import Method
from multilab.cells.store import Store
from multilab.core import read_json, record_checksums, report_dir, write_atomically, write_content
from multilab.core.settings import identity
from multilab.datasets import prepared_meta
from multilab.datasets.prepared import dataset_facts
from multilab.experiments.comparisons import comparisons, headline_metrics, study_ranks
from multilab.experiments.dvc_files import METRICS_FILE, PLOT_TABLES, write_plots
from multilab.experiments.evaluate import learned
from multilab.experiments.plan import study_cells
from multilab.experiments.study import Study
from multilab.model_selection import split_digests
from multilab.statistics.result_files import read_scores, statistics_file, variant_column


def write_statistics(study: Study) -> None:
    """Write what follows from the scores of a study to its report folder, but for the page.

    Each variant of two methods or more is compared by itself in a file of its own. The studies of the
    arena are compared on its page, `multilab arena rank` and `multilab arena page`.
    """
    folder = report_dir(study.name)
    scores = read_scores(folder)
    if study.page == "study":
        (folder / "figures").mkdir(exist_ok=True)  # DVC expects it, also of a study that learns none any more
        save_learned(study)
    written = write_comparisons(study, scores)
    contents = {
        "study.json": described(study),
        "datasets.json": _datasets(study, folder),
    }
    written += [_write(folder, name, content) for name, content in contents.items()]
    record_checksums(folder, written)


def write_comparisons(study: Study, scores: Any) -> list[str]:
    """Write what follows from settings and scores alone: means, comparisons, data of the plots; return their names.

    The names of files that were removed are among them.
    """
    folder = report_dir(study.name)
    means = headline_metrics(study, scores)
    contents = {"metrics.json": means, **({} if study.page == "arena" else _compared(study, scores))}
    written = [_write(folder, name, content) for name, content in contents.items()]
    removed = [path.name for path in folder.glob("statistics*.json.gz") if path.name not in written]
    for name in removed:
        (folder / name).unlink()
    write_plots(study, scores, means[study.headline], study_ranks(study, scores))
    return [*removed, *written, METRICS_FILE, *PLOT_TABLES]


def _write(folder: Path, name: str, content: Any) -> str:
    write_content(folder / name, json.dumps(content, indent=1, sort_keys=True) + "\n")
    return name


def _compared(study: Study, scores: Any) -> dict[str, Any]:
    """Return the comparisons of a study's own methods and of those of each variant, by the name of their file."""
    own = study.control if study.control in study.methods else None
    compared = {statistics_file(): comparisons(study, scores, study.datasets, study.methods, own)}
    for name, variant in study.variants.items():
        if len(variant.methods) > 1:
            control = variant_column(study.control, name) if study.control in variant.methods else None
            columns = tuple(variant.columns)
            compared[statistics_file(name)] = comparisons(study, scores, variant.datasets, columns, control)
    return compared


def dataset_description(study: Study, name: str) -> dict[str, Any]:
    """Return what a report says of a dataset and of its splits."""
    facts = {key: value for key, value in dataset_facts(name).items() if key not in ("key", "source")}  # of the reading
    return {**facts, "split_digests": split_digests(name, study.protocol_of(name))}


def _datasets(study: Study, folder: Path) -> list[dict[str, Any]]:
    """Return the descriptions of the datasets; of those that are not prepared here, the written ones."""
    path = folder / "datasets.json"
    written = {card["name"]: card for card in (read_json(path) if path.is_file() else ())}
    made = (dataset_description(study, name) for name in study.datasets)
    return [card if "digest" in card else written.get(card["name"], card) for card in made]


def described(study: Study) -> dict[str, Any]:
    """Return what a report says of a study and its columns, from the settings alone."""
    methods = {name: study.method(name) for name in study.all_methods}
    variants = {name: identity(v) | {"methods": list(v.columns)} for name, v in study.variants.items()}
    return {
        **identity(study),
        "variants": variants,
        "all_methods": list(methods),
        "method_titles": {name: m.title for name, m in methods.items()},
        "references": {name: m.reference for name, m in methods.items() if m.reference},
        "settings": {name: _settings(m) for name, m in methods.items()},
        "overrides": [block.to_dict() for block in study.settings],
        "primary_metrics": [study.headline],
    }


def _settings(method: Method) -> dict[str, Any]:
    lab: dict[str, Any] = {"preprocessing": method.preprocessing}
    if method.base_scores:
        lab |= {"base_scores": list(method.base_scores), "inner_cv": method.inner_cv}
    return {**method.identity(), **lab}


def save_learned(study: Study) -> None:
    """Copy what methods learned on first splits to the report's ``figures`` folder.

    Methods are the study's own, and those of variants that are fair or as printed. Of a cell that is not in the store
    the existing file stays: ``multilab store add`` does not need the cells of old columns.
    """
    store = Store()
    variants = [variant for variant in study.variants.values() if variant.kind in ("fair", "as_printed")]
    for method in (*study.methods, *(column for variant in variants for column in variant.columns)):
        for cell in study_cells(study, method):
            if cell.split_ref.split or not cell.method.save_attributes or not store.has(cell.key):
                continue
            if arrays := learned(cell, store):
                labels = (prepared_meta(cell.split_ref.dataset) or {}).get("label_names", [])
                buffer = io.BytesIO()
                content: dict[str, Any] = {"label_names": np.array(labels), **arrays}
                np.savez_compressed(buffer, **content)
                name = f"learned-{cell.method.name}-{cell.split_ref.dataset}.npz"
                write_atomically(report_dir(study.name) / "figures" / name, buffer.getvalue())
