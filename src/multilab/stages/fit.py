"""multilab fit: a model for use. Cross-validated scores first, then a fit on all rows, logged in MLflow without pickle.

  multilab fit dataset=emotions method=mlknn                             scores, fit, models:/m-...
  multilab fit dataset=emotions method=mlknn decision=macro_f1           thresholds from out-of-fold scores
  multilab fit dataset=emotions method=mlknn tune=20 --register mine     tuned; registered as models:/mine
  multilab fit dataset=emotions method=mlknn --output model              also as a folder

The first model of a name is @champion. A later one becomes it only if it is better on the same splits by the corrected
resampled t test (level=0.05); else it is @challenger. The settings of the champion are fitted again where the data
changed.

arguments:
  dataset=NAME          multilab datasets list
  method=NAME           multilab methods list; method.ARG=VALUE
  tune=N                trials of a search inside every training set, and on all rows for the final fit
  decision=OBJECTIVE    macro_f1, micro_f1, hamming_loss, example_f1, subset_accuracy
  calibration=KIND      sigmoid, isotonic, beta, temperature
  --register NAME       name in MLflow's registry
  metric=NAME           what decides about @champion (default: the champion's own, else the decision's, else macro_f1)
  level=0.05            level of that test
  --output FOLDER       write the model into a folder too
  protocol=kfold5       splits of the scores; seed=0, metrics=[...], tracking.uri=... as for multilab train
"""


def main(argv: list[str]) -> int:
    """`multilab fit dataset=NAME method=NAME [tune=20] [decision=macro_f1] [--register NAME] [--output FOLDER]`."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    from multilab.commands.final_fits import fit  # takes seconds

    return fit(argv)
