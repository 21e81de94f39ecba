"""Show a study, or ad-hoc runs, in MLflow: a view rebuilt from the result files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from multilab.experiments.errors import TrackingError
from multilab.experiments.settings import Study, load_study
from multilab.ground import canonical_json
from multilab.stages.common import Progress, arguments, compared_groups, report_dir, results_dir

if TYPE_CHECKING:
    from multilab.experiments.tracking import RunRecord


def main(argv: list[str]) -> int:
    """`multilab publish study=NAME | runs [tracking.uri=...]`.

    `publish runs` publishes what `multilab train` and `multilab tune` computed here, also while no server answered.
    """
    from multilab.experiments.receipts import tracking

    ad_hoc = argv[:1] == ["runs"]
    known = ["tracking.uri", "tracking.artifacts"]
    settings = arguments(argv[1:], *known) if ad_hoc else arguments(argv, "study", *known)
    where = tracking(settings.get("tracking.uri"), settings.get("tracking.artifacts"))
    if ad_hoc:
        from multilab.stages.publication import publish_all

        return publish_all(where)
    study = load_study(settings.get("study", "quick"))
    try:
        publish_study(study, where)
    except TrackingError as error:
        later = f"multilab publish study={study.name}"
        raise TrackingError(f"{error}; the results are complete, publish later: {later}") from error
    return 0


def publish_study(study: Study, where: dict[str, str]) -> None:
    """Publish a study, share the view of its runs table, and leave a receipt if it went to the configured store."""
    from multilab.experiments.receipts import tracking, write_receipt
    from multilab.experiments.tracking import Tracker

    tracker = Tracker(where["uri"], where["artifacts"])
    scores = study_scores(study)
    runs = list(Progress("publishing to MLflow")(records(study, scores), len(study_pairs(study))))
    counts = tracker.publish(study.name, runs, ranks=average_ranks(study, scores))
    others = [metric for metric in study.metrics if metric != study.headline]
    columns = ["Dataset", f"rank/{study.headline}", study.headline, *others[:4], "fit_seconds"]
    tracker.share_view(study.name, columns, order_by=f"rank/{study.headline}")
    if where == tracking():  # DVC asks about the configured store only
        content = canonical_json({"study": study.name, "runs": sorted(record.key for record in runs)})
        write_receipt(results_dir(study.name) / "published.json", content + "\n", where["uri"])
    print(f"MLflow experiment {study.name}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def study_scores(study: Study) -> Any:
    """Return the rows of ``scores.csv``, without splits on which a metric is undefined for every method."""
    import pandas as pd

    scores = pd.read_csv(report_dir(study.name) / "scores.csv", float_precision="round_trip")
    defined = scores.groupby(["dataset", "split", "metric"], sort=False)["value"].transform("count")
    return scores[defined > 0]


def study_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the pairs (method, dataset) of a study."""
    return [(method, dataset) for method in study.all_methods for dataset in study.datasets_of(method)]


def records(study: Study, scores: Any) -> Iterator[RunRecord]:
    """Yield one run per variant and dataset of a study, from its scores and the cell store."""
    from multilab.experiments.cells import study_cells
    from multilab.experiments.environment import environment
    from multilab.experiments.store import Store
    from multilab.stages.view import run_record

    store, about = Store(), environment()
    values = dict(list(scores.groupby(["method", "dataset"], sort=False)))
    cells = {method: study_cells(study, method) for method in study.all_methods}
    for method, dataset in study_pairs(study):
        chosen = [cell for cell in cells[method] if cell.part.dataset == dataset]
        yield run_record(study.name, chosen, values[method, dataset], store, about)


def average_ranks(study: Study, scores: Any) -> dict[str, dict[str, float]]:
    """Return the average rank over the datasets per method and metric of the study.

    The study's own methods are ranked among each other, and so are the methods of each of its column sets.
    """
    from multilab.metrics import METRICS
    from multilab.statistics import average_ranks as ranks_of
    from multilab.statistics import summarise

    ranks: dict[str, dict[str, float]] = {method: {} for method in study.all_methods}
    for methods, datasets in compared_groups(study):
        for metric in study.metrics if len(methods) > 1 else ():
            means = summarise(scores, metric, datasets, methods).mean
            for method, rank in ranks_of(means, METRICS[metric].direction).items():
                ranks[str(method)][metric] = float(rank)
    return ranks
