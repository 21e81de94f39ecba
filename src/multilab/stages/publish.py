"""Show a study, or ad-hoc runs, in MLflow: a view rebuilt from the result files."""

from multilab.commands.arguments import arguments
from multilab.commands.publication import publish_results, publish_study
from multilab.commands.train import read_runs
from multilab.commands.tuning import read_searches
from multilab.experiments.errors import TrackingError
from multilab.experiments.mlflow_store import tracking
from multilab.experiments.store import Store
from multilab.experiments.study import load_study


def main(argv: list[str]) -> int:
    """`multilab publish study=NAME | runs [tracking.uri=...]`.

    `publish runs` publishes what `multilab train` and `multilab tune` computed here, also while no server answered.
    """
    ad_hoc = argv[:1] == ["runs"]
    known = ["tracking.uri", "tracking.artifacts"]
    settings = arguments(argv[1:], *known) if ad_hoc else arguments(argv, "study", *known)
    where = tracking(settings.get("tracking.uri"), settings.get("tracking.artifacts"))
    if ad_hoc:
        return _publish_runs(where)
    study = load_study(settings.get("study", "quick"))
    try:
        publish_study(study, where)
    except TrackingError as error:
        later = f"multilab publish study={study.name}"
        raise TrackingError(f"{error}; the results are complete, publish later: {later}") from error
    return 0


def _publish_runs(where: dict[str, str]) -> int:
    """Publish all runs and searches that the store of cells has a note of."""
    store = Store()
    runs, left_out = read_runs(store, where)
    results = [*runs, *read_searches(store, where)]
    if results:
        publish_results(results, where)
    elif not left_out:
        print(f"nothing to publish: no runs of `multilab train` or `multilab tune` in {store.root}")
    if left_out:
        total = len(runs) + left_out
        print(f"{left_out} of {total} runs left out: settings, code or data changed since; train them again")
    return 0
