"""The program ``multilab``: its groups of commands, its help, and what a user sees of warnings and errors."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from multilab.core import MultilabError, data_dir, experiment_dir, store_dir
from multilab.core.messages import closest, pip_install, printable
from multilab.core.shell import command
from multilab.core.text import docstring

__all__ = ["main", "root"]

_SECTIONS = {
    "One method, or many": {"train": "train", "tune": "train", "compare": "compare", "results": "results"},
    "A model for use": dict.fromkeys(("fit", "predict", "serve", "monitor", "explain", "card"), "models"),
    "Models from elsewhere": {"evaluate": "evaluate", "decide": "evaluate"},
    "Groups of commands": {name: name for name in ("study", "datasets", "methods", "store", "arena")},
    "Checks": {"gate": "study", "regressions": "compare", "audit": "audit"},
    "Shell": {"completion": "completion"},
}
"""The commands of the first level, and the module of each in this package."""

_MODULES = {name: module for section in _SECTIONS.values() for name, module in section.items()}

_CHECKOUT_STEPS = (
    ("make reproduce", "the quick study, from nothing to a report"),
    ("{dvc} repro reports/mlwse-core/dvc.yaml", "a study of real data, from MULTILAB_DATA or downloaded"),
    ("make ui", "look at the runs in MLflow"),
)
_STEPS = (
    ("{multilab} datasets list", "the datasets"),
    ("{multilab} study run --study quick", "the quick study, from nothing to a report"),
    ("{multilab} train dataset=emotions method=mlknn", "one method on one dataset"),
)
_CORE_STEPS = (
    ("{multilab} datasets list", "the datasets"),
    ('pip install ".[lab]"', "in the clone: add studies, searches, MLflow and reports"),
)

_SAME_NAME = (
    *("dvc", "filelock", "jinja2", "matplotlib", "mlflow", "omegaconf", "optuna", "pyarrow", "requests"),
    *("rich", "skops", "sqlalchemy", "uvicorn"),
)
_LABORATORY = {"hydra": "hydra-core"} | {name: name for name in _SAME_NAME}
"""The modules that the core installation leaves out, and their distributions."""


class _Root(click.Group):
    """The commands of the first level, imported when they are used, listed by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _MODULES:
            return None
        subcommand: click.Command = getattr(import_module(f"multilab.cli.{_MODULES[name]}"), name)
        if sys.flags.optimize > 1:  # python -OO has removed the docstrings
            for documented in (subcommand, *getattr(subcommand, "commands", {}).values()):
                documented.help = docstring(documented.callback)
        return subcommand

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for section, modules in _SECTIONS.items():
            with formatter.section(section):
                texts = ((name, self.get_command(ctx, name)) for name in modules)
                rows = [(f"{name:<{width}}", entry.get_short_help_str(limit=100)) for name, entry in texts if entry]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first steps that are possible in this folder with this installation."""
        steps: tuple[tuple[str, str], ...] = _CORE_STEPS
        if _has_laboratory():
            steps = _CHECKOUT_STEPS if Path("Makefile").is_file() and Path("dvc.yaml").is_file() else _STEPS
        programs = {"multilab": command("multilab"), "dvc": command("dvc")}
        rows = [(step.format(**programs), text) for step, text in steps]
        width = max(len(step) for step, _ in rows)
        with formatter.section("First steps"):
            for step, text in rows:
                formatter.write(f"  {step:<{width}}  {text}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown one, suggest the groups' commands of that name."""
        if args and args[0] not in _MODULES:
            if ctx.resilient_parsing:  # completion: nothing comes after it
                return args[0], click.Command(args[0]), args[1:]
            groups = {name: self.get_command(ctx, name) for name in _MODULES}
            owners = [
                f"{name} {args[0]}" for name, group in groups.items() if args[0] in getattr(group, "commands", ())
            ]
            meant = owners or list(filter(None, [closest(args[0], _MODULES)]))
            hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


def _has_laboratory() -> bool:
    try:
        return find_spec("hydra") is not None
    except ImportError:
        return False


def _print_version(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        from multilab import __version__

        click.echo(__version__)
        ctx.exit()


@click.group(
    cls=_Root,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_context
def root(ctx: click.Context) -> None:
    """multilab: a laboratory for multi-label learning."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: list[str] | None = None) -> int:
    """Run one command; exit code 2 and one line for anything a user can fix."""
    try:
        if argv is None:
            _use_code_of_experiment()
            for stream in (sys.stdout, sys.stderr):  # in an old locale a character such as ± is shown as \\xb1
                if isinstance(stream, io.TextIOWrapper):
                    stream.reconfigure(errors="backslashreplace")
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `multilab store list | head`; the interpreter will flush once more, into nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _use_code_of_experiment() -> None:
    """Start again with the code in the temporary copy of a DVC experiment, if this is not the code that runs.

    An editable installation imports the code of the repository, which may have changed since ``dvc exp run --queue``.
    """
    copy = experiment_dir()
    source = str(copy / "src") if copy else ""
    path = os.environ.get("PYTHONPATH", "")
    if copy and (copy / "src" / "multilab" / "cli").is_dir() and path.partition(os.pathsep)[0] != source:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [source, path]))}
        os.execve(sys.executable, [sys.executable, "-m", "multilab", *sys.argv[1:]], environ)


def _run(argv: list[str]) -> int:
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # parallel over cells, one BLAS thread inside each
    if "_MULTILAB_COMPLETE" in os.environ:
        import_module("multilab.cli.completion")  # knows the shells
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return root.main(argv, prog_name="multilab", standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.ctx.get_help())
        return 0
    except click.UsageError as error:
        return _refuse(_usage(argv, error))
    except (KeyboardInterrupt, click.Abort):
        print("stopped; results that were stored are kept, and the next run uses them", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        message = _one_line(argv, error)
        if message is None or os.environ.get("MULTILAB_TRACEBACK"):
            raise
        return _refuse(message, getattr(error, "exit_code", 2))


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print a warning as one line, without Python's file and line number, control characters escaped."""
    print(printable(f"{category.__name__}: {message}"), file=sys.stderr)


def _refuse(message: str, code: int = 2) -> int:
    """Print one line to stderr, control characters escaped; return the exit code."""
    print(printable(f"Error: {message}"), file=sys.stderr)
    return code


def _usage(argv: list[str], error: click.UsageError) -> str:
    """Return what is wrong with a command line, and the command that helps."""
    return f"{error.format_message()} ({_called(argv)} --help)"


def _called(argv: list[str]) -> str:
    """Return the names of the program and of the command that a command line calls."""
    at: Any = root
    words = ["multilab"]
    for word in argv:
        at = at.get_command(click.Context(at), word) if isinstance(at, click.Group) else None
        if at is None:
            break
        words.append(word)
    return " ".join(words)


def _one_line(argv: list[str], error: Exception) -> str | None:
    """Return the message of an error that a user can fix, ``None`` for a fault of the program."""
    if isinstance(error, AttributeError) and isinstance(error.__cause__, ModuleNotFoundError):
        error = error.__cause__  # of `multilab.core.lazy.lazy_names`
    if isinstance(error, MultilabError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (missing := (error.name or "").partition(".")[0]) in _LABORATORY:
        command_line = pip_install(_LABORATORY[missing], extra="lab")
        return f"{_called(argv)} needs {missing}, which the core install leaves out: {command_line}"
    if isinstance(error, OSError) and error.errno is not None:
        path = f"{error.filename}: " if error.filename else ""
        return f"{path}{error.strerror}{_advice(error)}"
    if type(error).__module__.partition(".")[0] in ("mlflow", "requests", "sqlalchemy", "sqlite3"):
        return f"{str(error)[:500]} (results are kept; tracking.uri or MLFLOW_TRACKING_URI names another store)"
    return None


def _advice(error: OSError) -> str:
    """Return what helps with a full disk, and where the folder of cells or of data cannot be written to."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "; free some space and run again: finished cells are kept"
    if error.filename and error.errno in _NOT_WRITABLE:
        path = Path(os.fsdecode(error.filename)).absolute()
        for variable, folder in {"MULTILAB_CELLS": store_dir(), "MULTILAB_CACHE": data_dir()}.items():
            if path.is_relative_to(folder.absolute()):
                return f"; name a writable folder with {variable}"
    return ""


_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)
