"""Compare the methods of a study and build its report."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

from multilab.experiments.settings import Method, Study
from multilab.ground import write_atomically
from multilab.stages.common import report_dir, results_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab stats study=NAME`: writes ``statistics.json`` and, beside it, the ledger and ``index.html``."""
    import pandas as pd

    from multilab.experiments.environment import environment
    from multilab.metrics import METRICS
    from multilab.reports import build_report
    from multilab.statistics import compare, summarise

    study, _ = study_of(argv)
    folder = report_dir(study.name)
    scores = pd.read_csv(folder / "scores.csv", float_precision="round_trip")
    found = {}
    for metric in study.metrics:
        values = summarise(scores, metric, study.datasets, study.methods).mean
        asked = {"alpha": study.alpha, "control": study.control, "rope": study.rope, "seed": study.seed}
        found[metric] = compare(values, METRICS[metric].direction, metric=metric, **asked).to_dict()
    save_learned(study)
    _write(folder / "study.json", described(study))
    _write(folder / "datasets.json", json.loads((results_dir(study.name) / "datasets.json").read_text()))
    _write(folder / "environment.json", environment())
    save_ledger(study)
    _write(folder / "statistics.json", found)
    print(f"report: {build_report(folder)}")
    return 0


def _write(path: Any, content: Any) -> None:
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def described(study: Study) -> dict[str, Any]:
    """Return what a report says of a study and its methods, from the settings alone."""
    methods = {name: study.method(name) for name in study.methods}
    return {
        **dataclasses.asdict(study),
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
    """Copy what the methods learned on the first split of each dataset to the report's ``figures`` folder."""
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
