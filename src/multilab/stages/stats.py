"""Compare the methods of a study and build its report."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

from multilab.experiments.settings import Method, Study
from multilab.ground import write_atomically
from multilab.stages.common import StageLine, compared_groups, report_dir, results_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab stats study=NAME`: writes ``statistics.json``, ``metrics.json``, the ledger and ``index.html``.

    Each column set of two methods or more is compared by itself in ``statistics-<set>.json``, of the same form.
    """
    import pandas as pd

    from multilab.experiments.environment import environment
    from multilab.reports import build_report

    study, _ = study_of(argv)
    line = StageLine("stats")
    folder = report_dir(study.name)
    scores = pd.read_csv(folder / "scores.csv", float_precision="round_trip")
    save_learned(study)
    _write(folder / "study.json", described(study))
    _write(folder / "datasets.json", json.loads((results_dir(study.name) / "datasets.json").read_text()))
    _write(folder / "environment.json", environment())
    save_ledger(study)
    for path in folder.glob("statistics-*.json"):
        path.unlink()
    for name, found in study.columns.items():
        if len(found.methods) > 1:
            control = f"{study.control}-{name}" if study.control in found.methods else None
            compared = comparisons(study, scores, found.datasets, tuple(found.columns), control)
            _write(folder / f"statistics-{name}.json", compared)
    own = comparisons(study, scores, study.datasets, study.methods, study.control)
    _write(folder / "statistics.json", own)
    _write(folder / "metrics.json", headline_metrics(study, scores))
    page = build_report(folder)
    line.print(f"{len(study.all_methods)} methods on {len(study.datasets)} data sets", f"report {page}")
    return 0


def comparisons(
    study: Study, scores: Any, datasets: tuple[str, ...], columns: tuple[str, ...], control: str | None
) -> dict[str, Any]:
    """Return the comparison of some columns over some datasets, by metric of the study."""
    from multilab.metrics import METRICS
    from multilab.statistics import compare, summarise

    asked = {"alpha": study.alpha, "control": control, "rope": study.rope, "seed": study.seed}
    means = {metric: summarise(scores, metric, datasets, columns).mean for metric in study.metrics}
    return {m: compare(mean, METRICS[m].direction, metric=m, **asked).to_dict() for m, mean in means.items()}


def headline_metrics(study: Study, scores: Any) -> dict[str, dict[str, float]]:
    """Return the mean of each metric of the study per method, for `dvc metrics diff`."""
    from multilab.statistics import rounded_means

    means: dict[str, dict[str, float]] = {metric: {} for metric in study.metrics}
    for methods, datasets in compared_groups(study):
        for metric in study.metrics:
            means[metric] |= rounded_means(scores, metric, datasets, methods)
    return means


def _write(path: Any, content: Any) -> None:
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def described(study: Study) -> dict[str, Any]:
    """Return what a report says of a study and its columns, from the settings alone."""
    methods = {name: study.method(name) for name in study.all_methods}
    sets = {name: dataclasses.asdict(s) | {"methods": list(s.columns)} for name, s in study.columns.items()}
    return {
        **dataclasses.asdict(study),
        "columns": sets,
        "all_methods": list(methods),
        "method_titles": {name: m.title for name, m in methods.items()},
        "references": {name: m.reference for name, m in methods.items() if m.reference},
        "settings": {name: _settings(m) for name, m in methods.items()},
        "overrides": list(study.settings),
        "primary_metrics": [study.headline],
    }


def _settings(method: Method) -> dict[str, Any]:
    lab: dict[str, Any] = {"preprocessing": method.preprocessing}
    if method.base_scores:
        lab |= {"base_scores": list(method.base_scores), "inner": method.inner}
    return {**method.identity(), **lab}


def save_ledger(study: Study) -> None:
    """Write ``cells.csv`` of a study that has a paper, and ``claims.json`` of one that has claims."""
    from multilab.experiments.ledger import claims_text, judged
    from multilab.experiments.store import Store

    folder = report_dir(study.name)
    if study.paper:
        write_atomically(folder / "cells.csv", judged(study, folder).to_csv(index=False, lineterminator="\n"))
    if study.claims:
        write_atomically(folder / "claims.json", claims_text(study, folder, Store()))


def save_learned(study: Study) -> None:
    """Copy what the study's own methods learned on first splits to the report's ``figures`` folder."""
    import numpy as np

    from multilab.datasets import prepared_meta
    from multilab.experiments.cells import study_cells
    from multilab.experiments.results import learned
    from multilab.experiments.store import Store

    store = Store()
    for method in study.methods:
        for cell in study_cells(study, method):
            arrays = learned(cell, store) if cell.part.split == 0 and cell.method.keep else {}
            if arrays:
                labels = (prepared_meta(cell.part.dataset) or {}).get("label_names", [])
                buffer = io.BytesIO()
                content: dict[str, Any] = {"label_names": np.array(labels), **arrays}
                np.savez_compressed(buffer, **content)
                name = f"learned-{method}-{cell.part.dataset}.npz"
                write_atomically(report_dir(study.name) / "figures" / name, buffer.getvalue())
