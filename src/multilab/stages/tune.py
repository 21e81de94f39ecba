"""multilab tune: search of a method's hyperparameters with Optuna on all rows of one dataset.

  multilab tune dataset=emotions method=mlknn                        20 trials
  multilab tune dataset=emotions method=mlknn tune.n_trials=50       continues from the finished trials to 50
  multilab tune dataset=emotions method=mlknn tune.timeout=600       no new trial starts after 10 minutes
  multilab tune dataset=emotions method=mlknn method.scale=minmax    with other fixed arguments
  multilab tune -m dataset=emotions,scene method=mlknn,mlkelm        several searches, one after another

Trial 0 are the method's own values. The result is what changed, the best value against the default one, and the
command that trains with it. The search space is `search:` in the YAML of the method (multilab methods show NAME).

settings (name=value):
  dataset=NAME          multilab datasets list
  method=NAME           multilab methods list
  method.ARG=VALUE      a fixed argument of the method
  tune.n_trials=20      number of finished trials; only the missing ones are run
  tune.metric=NAME      what is optimised (ranking_loss); its direction is known
  tune.folds=3          inner stratified folds; tune.order=1: of labels, 2: of pairs of labels
  tune.sampler=tpe      tpe, random, or grid (the choices of every argument)
  tune.timeout=SECONDS  no new trial starts after that; at least one is finished
  tune.pruner=none      median: stop a trial that is worse than the median of earlier ones after an inner fold
  tune.storage=URL      Optuna storage such as sqlite:///trials.db; default: a journal in the store of cells
  seed=0                root of all seeds
  publish=true          show the search in the MLflow experiment "tuning"

To tune inside every training set of a cross-validation instead: multilab train tune.n_trials=20 ...
"""

from multilab.commands.tuning import tune


def main(argv: list[str]) -> int:
    """`multilab tune dataset=NAME method=NAME [tune.n_trials=20 tune.metric=ranking_loss]`."""
    if any(word in ("-h", "--help") for word in argv):
        print(__doc__)
        return 0
    return tune(argv)
