"""The commands about a model for use: fit, predict, serve, monitor, explain, card."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilab.cli.files import FEW, large_file, named_dataset, naming_flags, reader_options
from multilab.cli.options import (
    CONVENTIONS,
    COUNT,
    DATASET,
    FILE,
    FOLDS,
    LEVEL,
    METHOD,
    METRIC,
    PROTOCOL,
    SEED,
    SHARE,
    Duration,
    model_argument,
    output_option,
    tracking_option,
)
from multilab.core import MultilabError, write_atomically
from multilab.core.files import refuse_overwriting, signals_unwind
from multilab.core.messages import printable, unknown_name
from multilab.core.text import comma_separated, excerpt, listed

if TYPE_CHECKING:
    import pandas as pd

    from multilab.models import SavedModel
    from multilab.models.monitoring import Monitoring

WRITERS: dict[str, Callable[[pd.DataFrame], str | bytes]] = {
    ".csv": lambda table: table.to_csv(index=False, lineterminator="\n"),
    ".tsv": lambda table: table.to_csv(index=False, lineterminator="\n", sep="\t"),
    ".json": lambda table: table.to_json(orient="records", double_precision=15) + "\n",
    ".jsonl": lambda table: table.to_json(orient="records", lines=True, double_precision=15),
    ".parquet": lambda table: table.to_parquet(index=False),
}
"""Formats of an output file by its extension; a name without one is CSV."""

_LINEAR = "--method br_linear_svm --set preprocessing=standard, as `multilab compare` does"
_SHOWN = 20  # rows of a table of importances
_WEB = (".html", ".htm")
_HEAD = ("family", "item", "quantity", "test", "reference", "new", "effect", "adjusted p", "note")
_OVERALL, _OF_LABELS = ("micro_f1", "macro_f1"), ("precision", "recall", "f1")
_DECISIONS = "macro_f1, micro_f1, hamming_loss, example_f1 or subset_accuracy"


def _costs(ctx: click.Context, option: click.Parameter, value: str | None) -> dict[str, float] | None:
    """Return the costs of ``fp=1,fn=5``."""
    if value is None:
        return None
    try:
        return {name: float(number) for name, number in (word.split("=") for word in comma_separated(value))}
    except ValueError:
        raise click.BadParameter(f"{value!r} is not of the form fp=1,fn=5.") from None


@click.command()
@click.option(
    "--dataset",
    type=DATASET,
    required=True,
    help="A dataset, or a data file (all options: `multilab datasets add --help`).",
)
@click.option("--method", type=METHOD, help="The method (default: the best one found within --budget).")
@click.option("--budget", type=Duration(), help="Time to find and fit a method, if none is given: 90s, 10m, 2h (10m).")
@click.option("--set", "arguments", metavar="K=V", multiple=True, help="An argument of the method; repeatable.")
@click.option("--decision", metavar="METRIC", help=f"Tune thresholds on out-of-fold scores for {_DECISIONS}.")
@click.option("--calibration", metavar="KIND", help="Calibrate scores: sigmoid, isotonic, beta or temperature.")
@click.option(
    "--cost",
    metavar="fp=C,fn=C",
    callback=_costs,
    help="Minimise the expected cost of false positives and negatives (tp and tn cost 0); calibrates by sigmoid.",
)
@click.option("--chars", is_flag=True, help="Character n-grams in addition to words, for all columns of text.")
@click.option("--tune", type=COUNT, help="Trials of a search, inside every training set and on all rows.")
@click.option("--tune-metric", type=METRIC, help="Metric that the search optimises (ranking_loss).")
@click.option("--tune-folds", type=FOLDS, help="Inner folds of the search (3).")
@click.option("--register", metavar="NAME", help="Name in MLflow's registry.")
@click.option(
    "--metric", type=METRIC, help="Metric that decides which model is @champion (default: the champion's, or macro_f1)."
)
@click.option("--level", type=LEVEL, default=0.05, show_default=True, help="Significance level of that test.")
@click.option("-o", "--output", metavar="FOLDER", help="Also write the model into this folder.")
@click.option("--protocol", type=PROTOCOL, help="Splits to score the method on (kfold5).")
@click.option("--cv", type=FOLDS, help="Number of stratified folds to score the method on.")
@click.option("--seed", type=SEED, help="Root of all seeds (0).")
@click.option("--observed", metavar="SHARE", help="Share of the training labels that the method sees (1.0).")
@click.option("--conventions", type=CONVENTIONS, help="Preset of the metrics.")
@click.option("--show", type=METRIC, metavar="NAME,...", help="The metrics to print.")
@tracking_option
@reader_options(shown=FEW)
def fit(
    dataset: str,
    method: str | None,
    budget: float | None,
    arguments: tuple[str, ...],
    tune: int | None,
    tune_metric: str | None,
    tune_folds: int | None,
    cv: int | None,
    show: str | None,
    tracking_uri: str | None,
    reader: dict[str, Any],
    **options: Any,
) -> int:
    """Score a method, fit it on all rows, register the model.

    \b
    multilab fit --dataset emotions --method mlknn                           scores, fit, models:/m-...
    multilab fit --dataset emotions --method mlknn --set k=20                with another argument
    multilab fit --dataset emotions --method mlknn --decision macro_f1       thresholds from out-of-fold scores
    multilab fit --dataset emotions --method mlknn --tune 20 --register mine tuned; registered as models:/mine
    multilab fit --dataset my.csv --labels 'tag_*' --method br -o model      a file of your own; also as a folder
    multilab fit --dataset ./big/ --labels 'tag_*' --method br_sgd -o model  larger than memory, from Parquet files
    multilab fit --dataset my.csv --labels 'tag_*' --budget 2m -o model      the best method within two minutes

    Without --method, the command tries the methods of `multilab compare` within --budget, with thresholds tuned for
    --metric (macro_f1), and keeps the best one: the search of `AutoMultiLabel`.

    A folder of Parquet files, and a Parquet file of at least 2^27 cells, is read in batches of rows. The --method must
    then be one that learns from batches (br_sgd, relm, elm, mlkelm_nystroem); it is scored on held-out rows.

    The scores are cross-validated; the model is logged in MLflow without pickle. The first model of a name becomes
    @champion. A later one replaces it only if it is significantly better on the same splits by the corrected resampled
    t test (--level); otherwise it becomes @challenger. If the data changed, the champion's settings are evaluated
    again.
    """
    if wrong := next((word for word in arguments if "=" not in word), None):
        raise click.BadParameter(f"{wrong!r} is not of the form k=10.", param_hint="--set")
    large = large_file(dataset)
    if large and method is None:
        raise click.UsageError(
            f"{dataset} is read in batches of rows; methods are not compared on these. Name a --method."
        )
    dataset = dataset if large else named_dataset(dataset, reader)
    if method is None:
        of_methods = ("decision", "calibration", "cost", "protocol", "chars", "observed")
        if arguments or tune or any(options[name] for name in of_methods):
            of_method = "--set, --tune, --decision, --calibration, --cost, --chars, --observed and --protocol"
            raise click.UsageError(f"{of_method} need a --method.")
        best = _found(dataset, budget or 600.0, options["metric"] or "macro_f1", cv, options["seed"])
        method, arguments = best.options["method"], tuple(best.options["set"])
        options |= {"decision": best.options["decision"], "chars": best.options["chars"], "found": best}
    elif budget is not None:
        raise click.UsageError("--budget is the time to find a method; it excludes --method.")
    if options["cost"] is not None:
        options["calibration"] = options["calibration"] or "sigmoid"
    run = {
        "dataset": dataset,
        "method": method,
        **{name: options.pop(name) for name in ("protocol", "seed", "observed", "conventions")},
        "tune.n_trials": tune,
        "tune.metric": tune_metric,
        "tune.folds": tune_folds,
        "protocol.kfold": cv,
        "metrics": f"[{show}]" if show else None,
        "tracking.uri": tracking_uri,
    }
    if large:
        del run["dataset"]
    settings = [f"{name}={value}" for name, value in run.items() if value is not None]
    settings += [f"method.{word}" for word in arguments]
    if large:
        return _fit_large(dataset, reader, settings, run, options)

    from multilab.experiments.fit import FitOptions, fit_and_log

    return fit_and_log(settings, FitOptions(**options))


def _fit_large(
    path: str, reader: dict[str, Any], settings: list[str], run: dict[str, Any], options: dict[str, Any]
) -> int:
    """Fit to a table that is larger than memory; refuse options that need all rows at once."""
    allowed = ("method", "seed", "conventions", "metrics", "tracking.uri")
    refused = [name for name, value in run.items() if value is not None and name not in allowed]
    refused += [name for name in ("decision", "calibration", "cost", "chars", "register", "metric") if options[name]]
    if refused:
        names = {"protocol.kfold": "cv", "tune.n_trials": "tune"}
        shown = ", ".join(f"--{names.get(name, name).replace('.', '-')}" for name in refused)
        raise click.UsageError(f"{path} is read in batches of rows, without support for {shown}.")
    from multilab.experiments.fit import FitOptions, fit_large_and_log

    with naming_flags():
        return fit_large_and_log(path, reader, settings, FitOptions(**options))


def _found(dataset: str, budget: float, metric: str, cv: int | None, seed: int | None) -> Any:
    """Find the best method of the portfolio within some seconds, print what was tried, and return the model."""
    from multilab.cells.errors import ExperimentError
    from multilab.comparison.found import find_model
    from multilab.comparison.plan import DEFAULT_FOLDS
    from multilab.experiments.compose import check_dataset
    from multilab.metrics import METRICS

    check_dataset(dataset)
    if metric not in METRICS:
        raise ExperimentError(f"metric: {unknown_name('metric', metric, METRICS)}")
    best = find_model(dataset, budget, metric, cv or DEFAULT_FOLDS, seed or 0)
    print(*map(printable, best.text().splitlines()), sep="\n", flush=True)
    return best


@click.command()
@model_argument
@click.argument("rows")
@output_option(help="File to write: .csv, .tsv, .json, .jsonl, .parquet (default: CSV to the terminal).")
@click.option("--strict", is_flag=True, help="Refuse cells that are not a number or date if training had them.")
@click.option("--vectors", type=FILE, help="The .npy file of the rows, if the model was fitted with --vectors.")
@tracking_option
def predict(
    model: str, rows: str, output: str | None, strict: bool, vectors: Path | None, tracking_uri: str | None
) -> None:
    """Predict the rows of a file: decisions, and probabilities or scores.

    \b
    multilab predict models:/mine@champion new.csv -o out.csv

    MODEL is models:/mine@champion, models:/m-..., or a folder of `multilab fit --output`. ROWS is a CSV, TSV, JSON,
    Excel, Parquet or ARFF file with the columns of the training file, in any order. The result has the columns that
    the card drops, such as an identifier (but none with the name of a prediction), then per label a decision and a
    probability, or a score if the method has no probabilities (`multilab fit --calibration sigmoid` makes them).
    Unreadable cells count as missing; the command prints how many there are.

    A folder of Parquet files, and a Parquet file of at least 2^27 cells, is read, predicted and written in batches of
    rows; -o is then a .parquet, .csv or .tsv file.
    """
    import pandas as pd

    from multilab.cells.progress import ProgressBar
    from multilab.datasets.table_cells import cell_texts
    from multilab.models import load_model
    from multilab.models.model_limits import prediction_warnings

    check_output(output, rows, *Path(rows).glob("*.parquet"), *Path(model).rglob("*"))
    saved = load_model(model, tracking_uri)
    if large_file(rows):
        if vectors is not None:
            raise click.UsageError(f"{rows} is read in batches of rows, without support for --vectors.")
        _predict_large(saved, rows, output, strict)
        return
    table = saved.read(rows)
    if vectors is not None:
        from multilab.datasets.vectors import read_vectors, with_vectors

        table = with_vectors(table, read_vectors(vectors), vectors)
    encoded = saved.encode(table, strict=strict)
    for note in encoded.notes():
        print(printable(f"note: {note}"), file=sys.stderr)
    scores, decisions = saved.predict_encoded(encoded.X, ProgressBar("predicting"))
    for warning in prediction_warnings(saved.metadata, decisions.mean(axis=0), len(decisions)):
        print(printable(f"warning: {warning}"), file=sys.stderr)
    copied = {name: cell_texts(table[name]) for name in saved.copied_columns(table.columns)}
    predicted = pd.DataFrame(copied, table.index, dtype="str").join(saved.frame_of(scores, decisions, table.index))
    if output is None:
        click.echo(predicted.to_csv(index=False, lineterminator="\n").encode(), nl=False)  # UTF-8 in every locale
        return
    save_table(predicted, output)
    print(f"{output}: {len(predicted)} rows, {len(saved.label_names)} labels")


def _predict_large(saved: SavedModel, rows: str, output: str | None, strict: bool) -> None:
    if output is None:
        raise click.UsageError(f"{rows} is read in batches of rows; name a file for the predictions (-o).")
    if Path(output).resolve().parent == Path(rows).resolve():
        raise MultilabError(f"{output} is in the folder that is read; name a file in another folder")
    from multilab.models.file_prediction import predict_file

    n_rows, notes, warnings = predict_file(saved, rows, output, strict=strict)
    for note in notes:
        print(printable(f"note: {note}"), file=sys.stderr)
    for warning in warnings:
        print(printable(f"warning: {warning}"), file=sys.stderr)
    print(f"{output}: {n_rows} rows, {len(saved.label_names)} labels")


@click.command()
@model_argument
@click.option("--port", type=int, default=5001, show_default=True, metavar="N", help="0: any free port.")
@click.option("--max-mb", type=float, default=16, show_default=True, metavar="N", help="Largest body of a request.")
@click.option("--strict", is_flag=True, help="Answer 400 to cells that are not a number or date if training had them.")
@tracking_option
def serve(model: str, port: int, max_mb: float, strict: bool, tracking_uri: str | None) -> int:
    """Serve a model over HTTP on this machine.

    \b
    multilab serve models:/mine@champion --port 5001

    The server listens on 127.0.0.1 and takes the requests of `mlflow models serve`: POST /invocations takes
    {"dataframe_split": {"columns": [...], "data": [[...]]}} or {"dataframe_records": [{...}]}, with the columns of the
    training file, and returns {"predictions": [{label: 0 or 1, label_probability: ...}]}. A request that the model
    cannot predict gets status 400 and one line that names the column. GET /ping returns 200 when the server is ready.
    """
    from multilab.models.serving import serve_model

    return serve_model(model, port, tracking_uri, max_mb, strict)


@click.command()
@model_argument
@click.argument("rows")
@click.option("--level", type=LEVEL, default=0.05, show_default=True, help="Significance level of all tests together.")
@click.option("--min-effect", type=SHARE, default=0.1, show_default=True, help="Smallest effect to report.")
@click.option("--all", "every", is_flag=True, help="Print all tests, not only those that report drift.")
@click.option("--by", metavar="COLUMN", help="Estimate quality for the rows with each value of a column, too.")
@output_option(help="Write all tests as JSON.")
@tracking_option
def monitor(
    model: str,
    rows: str,
    level: float,
    min_effect: float,
    every: bool,
    by: str | None,
    output: str | None,
    tracking_uri: str | None,
) -> int:
    """Test new rows for drift, and estimate the quality of predictions.

    \b
    multilab monitor models:/mine@champion new.csv
    multilab monitor model new.csv --level 0.01 --min-effect 0.05 -o drift.json
    multilab monitor model new.csv --by town                               quality by town

    The command tests the values and the share of missing values of each feature, and the predicted prevalence of each
    label. If the file has label columns, it also tests the true prevalence and the calibration. Without drift, the
    probability that anything is reported is at most --level. Effects below --min-effect are never reported; 0.1 is
    about the difference between 50 % and 60 % of the rows, or between 1 % and 4 %.

    The quality is estimated without labels: the predicted probabilities give the expected micro and macro F1, and
    precision, recall and F1 of each label, with 95 % intervals. Nothing is estimated if the probabilities were not
    calibrated on the held-out training rows.

    Exit code: 0 no drift, 1 drift, 2 wrong arguments, file or columns.
    """
    from multilab.models import load_model
    from multilab.models.monitoring import monitor_rows

    if output is not None:
        refuse_overwriting(output, rows, *Path(model).rglob("*"))
    saved = load_model(model, tracking_uri)
    result = monitor_rows(saved, saved.read(rows), level, min_effect, by)
    about = saved.metadata
    if output is not None:
        head = {"model": model, "dataset": about.dataset["name"], "digest": about.dataset["digest"], "file": rows}
        write_atomically(output, json.dumps({**head, **result.to_dict()}, indent=1) + "\n")
    title = f"{about.method['title']} on {about.dataset['name']}"
    training = f"compared with {about.dataset['instances']} training rows ({title})"
    print(printable(f"{rows}: {result.n_rows} rows, {training}"))
    _print_report(result, every)
    _print_quality(result.quality, by)
    return int(len(result.report.drifted) > 0)


@click.command()
@model_argument
@click.argument("rows")
@click.option("--label", metavar="LABEL", help="One label (default: all together).")
@click.option("--metric", type=METRIC, help="Metric whose loss is measured (default: macro_auc).")
@click.option("--repeats", type=int, default=10, show_default=True, metavar="N", help="Permutations per column.")
@output_option(help="File of the table: .csv, .tsv, .json, .jsonl, .parquet.")
@tracking_option
def explain(
    model: str,
    rows: str,
    label: str | None,
    metric: str | None,
    repeats: int,
    output: str | None,
    tracking_uri: str | None,
) -> None:
    """Show which columns of the table a model needs, label by label.

    \b
    multilab explain models:/mine@champion new.csv --label tag_a

    If the file ROWS has labels, the command prints the permutation importance: the loss of a metric when the values of
    one column are permuted (all 0/1 columns of a text column together). With --label it also prints the coefficients of
    a linear model, or the importances of trees. Words of a text need a method that is linear per label, such as
    br_linear_svm. -o writes both lists, with their kind in the first column.
    """
    import pandas as pd

    from multilab.cells.progress import ProgressBar
    from multilab.models import load_model
    from multilab.models.explaining import coefficient_table, permutation_table

    check_output(output, rows, *Path(rows).glob("*.parquet"), *Path(model).rglob("*"))
    saved = load_model(model, tracking_uri)
    frame = saved.read(rows)
    coefficients = coefficient_table(saved, label) if label is not None else None
    wanted = saved.label_names if label is None else [label]
    if coefficients is not None and not set(wanted) <= set(frame.columns):
        missing = saved.encoder.reading.get("tags", label)
        print(f"{rows} has no column {missing!r}: no permutation importance", file=sys.stderr)
        tables = []
    else:
        bar = ProgressBar("permutation importance")
        table = permutation_table(saved, frame, label, metric=metric, n_repeats=repeats, progress=bar)
        tables = [table.set_axis(["name", "value", "std"], axis=1).assign(kind="permutation importance")]
        what = f"label {label!r}" if label is not None else "all labels"
        about = table.attrs
        left_out = len(frame) - about["rows"]
        unobserved = f" ({left_out} others have no label)" if left_out else ""
        value = f"{about['metric']} {about['value']:.4f} on {about['rows']} rows{unobserved}"
        print(f"{what}: {value}; loss when a column is permuted")
        _print_table(table)
        important = set(table.loc[table["importance"] > 0, "column"])
        texts = sorted(column.name for column in saved.encoder.columns if column.is_text and column.name in important)
        if texts and coefficients is None:
            linear = label is None and coefficient_table(saved, wanted[0]) is not None
            how = "give --label" if linear else f"fit a method that is linear per label: {_LINEAR}"
            print(printable(f"for the words of {listed(texts)}, {how}"))
    if coefficients is not None:
        kind = coefficients.columns[1]
        signs = "; positive values favour the label" if kind == "coefficient" else ""
        print(f"{kind}s of the model, on scaled features, largest first{signs}:")
        _print_table(coefficients)
        tables.append(coefficients.set_axis(["name", "value"], axis=1).assign(kind=kind))
    if output is not None:
        table = pd.concat(tables, ignore_index=True).reindex(columns=["kind", "name", "value", "std"])
        save_table(table, output)
        print(f"{output}: {len(table)} rows")


@click.command()
@model_argument
@output_option(help="File to write; .html is a web page (default: print).")
@click.option("--html", is_flag=True, help="Write a web page instead of Markdown.")
@tracking_option
def card(model: str, output: str | None, html: bool, tracking_uri: str | None) -> None:
    """Write the card of a model: data, metrics, limits.

    \b
    multilab card models:/mine@champion                    Markdown, to the terminal
    multilab card models:/mine@champion -o card.md
    multilab card model -o card.html                       one self-contained page (or --html)

    A card describes data, settings, metrics with intervals, labels, calibration and known weaknesses.
    """
    from multilab.models.loading import model_folder
    from multilab.models.metadata import ModelMetadata
    from multilab.models.model_card import model_card

    extension = Path(output or "").suffix.lower()
    if extension not in ("", ".md", ".markdown", ".txt", *_WEB) and not html:
        raise MultilabError(f"{output}: a card is written as .md or .html, not as {extension}")
    if output is not None:
        refuse_overwriting(output, *Path(model).rglob("*"))
    with signals_unwind(), tempfile.TemporaryDirectory() as scratch:
        about = ModelMetadata.load(model_folder(model, scratch, tracking_uri))
    card = model_card(about)
    text = card.html() if html or extension in _WEB else card.markdown()
    if output is None:
        print(text, end="")
    else:
        write_atomically(output, text)
        print(f"{output}: {card.title}")


def check_output(output: str | None, *inputs: str | Path, extensions: Iterable[str] = WRITERS) -> None:
    """Refuse an output file in a format that is not written, and one that this command reads.

    Raises
    ------
    MultilabError
        If the file is refused.
    """
    if output is None:
        return
    extension = Path(output).suffix.lower()
    if extension and extension not in extensions:
        raise MultilabError(f"{output}: tables are written as {', '.join(extensions)}, not as {extension}")
    refuse_overwriting(output, *inputs)


def save_table(table: pd.DataFrame, output: str) -> None:
    """Write a table in the format that the extension of the file names."""
    write_atomically(output, WRITERS[Path(output).suffix.lower() or ".csv"](table))


def _print_table(table: pd.DataFrame) -> None:
    """Print the first rows of a table of a name and numbers."""
    shown = table.head(_SHOWN)
    names = [printable(excerpt(str(name))) for name in shown.iloc[:, 0]]
    width = max(map(len, names), default=0)
    for name, values in zip(names, shown.iloc[:, 1:].itertuples(index=False), strict=True):
        print(f"  {name:<{width}}  " + " ± ".join(f"{value:.4f}" for value in values))
    if len(table) > _SHOWN:
        print(f"  and {len(table) - _SHOWN} more")


def _print_report(result: Monitoring, every: bool) -> None:
    report = result.report
    table = report.table
    lines: list[tuple[str, ...]] = [("family", "tests", "drift", "smallest adjusted p")]
    tested = table[table["p"].notna()]
    for family, rows in tested.groupby("family", sort=False):
        smallest = rows["p_adjusted"].min()
        lines.append((str(family), str(len(rows)), str(int(rows["drift"].sum())), f"{smallest:.2g}"))
    print()
    _print_columns(lines)
    shown = table if every else report.drifted
    if len(shown):
        print("\nall tests" if every else "\ndrift")
        _print_columns([_HEAD, *(_cells(row) for row in shown.to_dict("records"))])
    untested = len(table) - len(tested)
    if untested and not every:
        print(f"\n{untested} features and labels could not be tested; --all lists them with the reason")
    for note in result.notes:
        print(f"note: {note}")
    verdict, families = "drift" if len(report.drifted) else "no drift", tested["family"].nunique()
    print(f"\n{verdict}: {len(tested)} tests; without drift the probability of any report is at most {report.alpha:g}")
    bound = f"Holm within each of {families} families, Bonferroni between them"
    print(f"({bound}); effects below {report.min_effect:g} do not count")


def _print_quality(quality: pd.DataFrame, by: str | None) -> None:
    if quality.empty:
        return
    texts = quality.assign(
        text=[
            "-" if row.expected != row.expected else f"{row.expected:.3f} ({row.low:.3f} to {row.high:.3f})"
            for row in quality.itertuples()
        ],
        before=[f"{value:.3f}" if value == value else "-" for value in quality["held_out"]],
    )
    print("\nexpected without labels, with 95 % intervals")
    head = f"rows by {by}" if by else "rows"
    lines: list[tuple[str, ...]] = [(printable(head[:40]), "", "micro F1", "macro F1")]
    overall = texts[texts["label"] == ""]
    for group, part in overall.groupby("group", sort=False):
        rows = str(part["rows"].iloc[0])
        lines.append((printable(str(group)[:40]) or "all", rows, *_by_quantity(part, "text", _OVERALL)))
    lines.append(("held out in training", "", *_by_quantity(overall[overall["group"] == ""], "before", _OVERALL)))
    _print_columns(lines)
    print()
    lines = [("label", "precision", "held out", "recall", "held out", "F1", "held out")]
    for label, part in texts[texts["label"] != ""].groupby("label", sort=False):
        pairs = zip(_by_quantity(part, "text", _OF_LABELS), _by_quantity(part, "before", _OF_LABELS), strict=True)
        lines.append((printable(str(label)[:40]), *(text for pair in pairs for text in pair)))
    _print_columns(lines)


def _by_quantity(part: pd.DataFrame, column: str, quantities: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.set_index("quantity")[column].loc[list(quantities)])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = ("-" if value != value else f"{value:.3g}" for value in (row["reference"], row["new"], row["effect"]))
    adjusted = "-" if row["p_adjusted"] != row["p_adjusted"] else f"{row['p_adjusted']:.2g}"
    texts = (row["family"], row["item"][:40], row["quantity"], row["test"])
    return (*map(printable, texts), *numbers, adjusted, printable(row["note"]))


def _print_columns(lines: list[tuple[str, ...]]) -> None:
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  " + "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip())
