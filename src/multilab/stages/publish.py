"""Show a study, or ad-hoc runs, in MLflow: a view rebuilt from the result files."""

from multilab.commands.arguments import arguments
from multilab.commands.publication import publish_all, publish_study
from multilab.experiments.errors import TrackingError
from multilab.experiments.mlflow_store import tracking
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
        return publish_all(where)
    study = load_study(settings.get("study", "quick"))
    try:
        publish_study(study, where)
    except TrackingError as error:
        later = f"multilab publish study={study.name}"
        raise TrackingError(f"{error}; the results are complete, publish later: {later}") from error
    return 0
