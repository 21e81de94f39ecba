"""Files of made-up studies for the tests of reports."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from multilab.core import json_digest, write_content
from multilab.statistics import compare_methods, summarise
from multilab.statistics.result_files import keep_measured, write_results

DIRECTIONS = {"hamming_loss": "min", "average_precision": "max", "coverage": "min", "macro_f1": "max"}
TITLES = {
    "br": "BR",
    "mlknn": "ML-kNN",
    "mlwse_l1": "MLWSE-L1",
    "mlwse_l21": "MLWSE-L21",
    "mlkelm": "ML-KELM",
}
SETS = ["emotions", "flags", "gpositive-go", "yeast"]
THREE = ("left", "middle", "right")


def write_fake_study(
    folder, datasets=SETS, methods=TITLES, metrics=DIRECTIONS, folds=5, seed=0, control=None, learned=2
):
    """Write all files of a study with made-up numbers; each method a little better than the one before."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    scores, measured = [], []
    for d in datasets:
        level = rng.uniform(0.2, 0.5)
        for j, m in enumerate(methods):
            for s in range(folds):
                key = json_digest([d, s, m])
                for metric, direction in metrics.items():
                    quality = 0.01 * j + rng.normal(0, 0.01)
                    value = level + quality if direction == "max" else level - quality
                    scores.append((d, s, m, metric, value * (8 if metric == "coverage" else 1), key))
                measured.append((d, s, m, *(rng.gamma(2, 0.1 * (j + 1), 2)), 80 + 10 * j, 1e5 * (j + 1), key))
    head = ["dataset", "split", "method", "metric", "value", "key"]
    table = pd.DataFrame(scores, columns=head)
    costs = ["fit_seconds", "predict_seconds", "peak_mb", "model_bytes"]
    seconds = pd.DataFrame(measured, columns=["dataset", "split", "method", *costs, "key"])
    write_results(folder, table, {})
    keep_measured(folder, seconds, again=True)
    statistics = {
        metric: compare_methods(
            summarise(table, metric, list(datasets), list(methods)).mean,
            direction,
            control=control,
            metric=metric,
        ).to_dict()
        for metric, direction in metrics.items()
    }
    write_json(folder, "statistics.json.gz", statistics)
    write_fake_texts(folder, datasets, methods, metrics, rng)
    for d in list(datasets)[:learned]:
        write_fake_learned(folder / "figures" / f"learned-mlwse_l21-{d}.npz", rng)
    return folder


def write_json(folder, name, value):
    write_content(folder / name, json.dumps(value))


def write_fake_texts(folder, datasets, methods, metrics, rng):
    write_json(
        folder,
        "study.json",
        {
            "name": folder.name,
            "title": "Weighted stacking with sparse regularisation",
            "description": "The MLWSE paper <in small>: stacking against its base methods.",
            "datasets": list(datasets),
            "methods": list(methods),
            "method_titles": dict(methods),
            "metrics": list(metrics),
            "primary_metrics": list(metrics)[:2],
            "protocol": {"split": {"kfold": 5, "stratified": "iterative"}, "shuffle": True, "seed": 1},
            "alpha": 0.05,
            "seed": 1,
            "references": {"br": "Tsoumakas & Katakis 2007", "mlwse_l21": "Xia et al. 2021"},
            "settings": {
                "mlwse_l21": {"alpha": 0.05, "base_scores": ["br", "mlknn", "mlkelm"]},
                "br": {"C": 1.0},
            },
        },
    )
    cards = [
        {
            "name": d,
            "instances": int(rng.integers(200, 3000)),
            "features": int(rng.integers(20, 500)),
            "labels": 6,
            "cardinality": 1.868,
            "density": 0.311,
            "distinct_label_sets": 27,
            "digest": f"{i:x}" * 64,
        }
        for i, d in enumerate(datasets)
    ]
    write_json(folder, "datasets.json", cards)
    environment = {
        "commit": "0" * 40,
        "machine": "x86_64, 2 cores",
        "python": "3.11.7",
        "versions": {"numpy": "2.4.6"},
    }
    write_json(folder, "environment.json", environment)


def write_fake_learned(path, rng, labels=6):
    names = ["amazed", "happy", "relaxing", "quiet", "sad", "angry"][:labels]
    Y = rng.random((200, labels)) < 0.4
    cosines = (Y.T @ Y.astype(float)) / np.sqrt(np.outer(Y.sum(0), Y.sum(0)))
    W = np.vstack([np.eye(labels) * scale for scale in (0.6, 0.3, 0.1)]) + rng.normal(0, 0.05, (3 * labels, labels))
    W[2 * labels :] = 0.0
    path_ = 10 + 90 * 0.93 ** np.arange(150.0)
    np.savez(path, W_=W, label_affinity_=cosines, objective_path_=path_, label_names=np.array(names))


def write_means(folder: Path, means: pd.DataFrame, **info) -> Path:
    """Write ``scores.csv.gz`` and ``study.json``: two splits around the means of datasets x methods."""
    folder.mkdir(exist_ok=True)
    rows = [
        (dataset, split, method, "hamming_loss", means.loc[dataset, method] + (split - 0.5) / 1000)
        for dataset in means.index
        for split in (0, 1)
        for method in means.columns
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    frame.to_csv(folder / "scores.csv.gz", index=False)
    (folder / "study.json").write_text(json.dumps({"name": folder.name, "title": folder.name, **info}))
    return folder


def random_means(k: int, seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(seed).uniform(0.1, 0.4, (len(THREE), k)).round(3)
    return pd.DataFrame(values, index=list(THREE), columns=[f"m{i:02d}" for i in range(k)])
