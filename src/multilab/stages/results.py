"""The results in the store of cells as tables, one per dataset and protocol.

  multilab results                                    everything
  multilab results dataset=emotions,scene             some datasets; patterns such as 'yahoo-*' do too
  multilab results 'method=mlwse_*' protocol=kfold5   some methods, one protocol
  multilab results metric=macro_f1,micro_f1           other metrics; conventions=PRESET: under another preset
  multilab results dataset=emotions --csv             unrounded, with standard deviations
  multilab results dataset=emotions --latex           a tabular (booktabs), the best in bold

A row is a method with the settings that differ from its YAML. Where several datasets have results under one protocol,
a last table shows the methods over all of them, with average ranks. Results of older code or data are left out.
"""

from multilab.commands.arguments import arguments
from multilab.commands.results import print_left_out, print_tables, shown_metrics, stored_rows
from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store
from multilab.reports.tables.results import as_csv


def main(argv: list[str]) -> int:
    """`multilab results [dataset=A,B] [method=...] [protocol=...] [metric=...] [--csv | --latex]`."""
    if any(word in ("-h", "--help") for word in argv):
        print(__doc__)
        return 0
    flags = {word for word in argv if word in ("--csv", "--latex")}
    if len(flags) > 1:
        raise ExperimentError("--csv and --latex exclude each other")
    rest = [word for word in argv if word not in flags]
    filters = arguments(rest, "dataset", "method", "protocol", "metric", "conventions")
    metrics = shown_metrics(filters.get("metric"))
    rows, left_out = stored_rows(Store(), filters)
    if "--csv" in flags:
        print(as_csv(rows, metrics), end="")
    else:
        print_tables(rows, metrics, latex="--latex" in flags)
        print_left_out(rows, left_out)
    return 0
