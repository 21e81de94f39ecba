"""The gate of declared versions fails on changes that a stored result would outlive, and names the line to raise."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from helpers.keys import raise_version
from multilab.cli.main import main
from multilab.core import versions
from multilab.experiments import version_gate
from multilab.experiments.version_gate import check_versions
from multilab.methods import KernelELM, MLkNN, NystroemKernelELM, kernels
from multilab.metrics.registry import defined

SUBJECTS = ("mlkelm", "mlkelm_nystroem", "mlknn", "metric hamming_loss")
FILE = Path("tests/references/versions.json")


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> str:
    """The references of three methods and a metric, as the unchanged code makes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("references"))
        patch.setenv("MULTILAB_JOBS", "1")
        patch.setattr(version_gate, "load_reference", lambda name: None)
        assert check_versions("tests/references", SUBJECTS) == 0
        return FILE.read_text()


@pytest.fixture
def gate(reference, tmp_path, monkeypatch, capsys):
    """Return a function that runs the gate with these references and returns its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    FILE.parent.mkdir(parents=True)
    FILE.write_text(reference)

    def run(accept=None):
        return check_versions(accept, SUBJECTS), capsys.readouterr().out

    yield run
    versions._versions.cache_clear()  # of raised versions


def cases(subject):
    entries = json.loads(FILE.read_text())["cases"]
    return {name: entry["numbers"] for name, entry in entries.items() if name.startswith(f"{subject}:")}


def edit_default(change):
    """Change the committed table of the defaults of ML-kNN."""
    content = json.loads(FILE.read_text())
    change(content["defaults"]["MLkNN"]["defaults"])
    FILE.write_text(json.dumps(content))


def line_of(cls):
    return f"{Path(inspect.getsourcefile(cls)).name}:{inspect.getsourcelines(cls)[1]}: results_version = 2"


def plant_other_formula(monkeypatch):
    """Let ML-kNN smooth with another number than the one that it is given."""
    fit = MLkNN._fit

    def wrong(self, *arguments):
        self.s += 0.01
        fit(self, *arguments)
        self.s -= 0.01

    monkeypatch.setattr(MLkNN, "_fit", wrong)


@pytest.mark.slow
def test_unchanged_code_passes_and_its_references_stay(gate, reference):
    assert gate()[0] == 0
    assert gate("tests/references")[0] == 0
    assert FILE.read_text() == reference
    assert all(cases(subject) for subject in SUBJECTS)


def test_a_changed_formula_fails_and_the_line_of_its_class_is_named(gate, monkeypatch):
    plant_other_formula(monkeypatch)
    code, said = gate()
    assert code == 1
    assert line_of(MLkNN) in said
    assert "KernelELM" not in said


def test_numbers_that_moved_under_unchanged_versions_are_not_accepted(gate, monkeypatch, reference):
    plant_other_formula(monkeypatch)
    code, said = gate("tests/references")
    assert code == 1
    assert line_of(MLkNN) in said
    assert FILE.read_text() == reference


@pytest.mark.slow
def test_a_changed_helper_fails_for_the_classes_that_name_it_and_their_common_module_is_named(gate, monkeypatch):
    kernel_from = kernels.kernel_from
    monkeypatch.setattr(kernels, "kernel_from", lambda *given, **named: 1.01 * kernel_from(*given, **named))
    code, said = gate()
    assert code == 1
    assert line_of(KernelELM) in said
    assert line_of(NystroemKernelELM) in said
    assert f"{Path(kernels.__file__).name}: RESULTS_VERSION = 2" in said
    assert line_of(MLkNN) not in said


@pytest.mark.slow
def test_a_raise_fails_until_its_numbers_are_accepted(gate, monkeypatch):
    before = {subject: cases(subject) for subject in SUBJECTS}
    plant_other_formula(monkeypatch)
    raise_version(monkeypatch, MLkNN)
    code, said = gate()
    assert code == 1
    assert "multilab gate --accept tests/references" in said
    assert "results_version = " not in said
    assert gate("tests/references")[0] == 0
    assert gate()[0] == 0
    changed = [subject for subject in SUBJECTS if cases(subject) != before[subject]]
    assert changed == ["mlknn"]


@pytest.mark.slow
def test_a_raise_that_moves_no_number_needs_new_references_too(gate, monkeypatch):
    before = cases("mlkelm")
    raise_version(monkeypatch, kernels)
    assert gate()[0] == 1
    assert gate("tests/references")[0] == 0
    assert gate()[0] == 0
    assert cases("mlkelm") == before


@pytest.mark.slow
def test_a_changed_default_fails_although_no_number_moves(gate, monkeypatch, reference):
    defaults = inspect.signature(MLkNN).parameters
    assert defaults["k"].default == 10
    changed = tuple(11 if one.name == "k" else one.default for one in defaults.values())
    monkeypatch.setattr(MLkNN.__init__, "__defaults__", changed)
    for accept in (None, "tests/references"):
        code, said = gate(accept)
        assert code == 1
        assert line_of(MLkNN) in said
        assert said.count("GATE: ") == 1
    assert FILE.read_text() == reference
    raise_version(monkeypatch, MLkNN)
    assert gate("tests/references")[0] == 0
    assert json.loads(FILE.read_text())["defaults"]["MLkNN"]["defaults"]["k"] == 11


def test_a_default_that_vanished_fails(gate):
    edit_default(lambda table: table.update(weighting="uniform"))
    code, said = gate()
    assert code == 1
    assert line_of(MLkNN) in said


def test_a_new_argument_passes(gate):
    edit_default(lambda table: table.pop("k"))
    assert gate()[0] == 0


def test_a_changed_metric_fails_and_its_line_is_named(gate, monkeypatch):
    formula = defined("hamming_loss").formula
    monkeypatch.setattr(formula, "__code__", (lambda counts, conventions: counts.share_wrong + 0.01).__code__)
    code, said = gate()
    assert code == 1
    assert "version=2" in said
    assert "results_version = " not in said


@pytest.mark.slow
def test_a_case_without_a_reference_and_a_reference_without_a_case_fail(gate):
    content = json.loads(FILE.read_text())
    content["cases"]["mlknn: gone"] = content["cases"].pop("mlknn: dense")
    FILE.write_text(json.dumps(content))
    code, said = gate()
    assert code == 1
    assert "mlknn: dense" in said
    assert "mlknn: gone" in said


@pytest.mark.parametrize(
    ("options", "checked"), [([], True), (["--study", "quick"], False), (["--method", "br"], False)]
)
def test_the_command_checks_versions_before_the_quick_study_where_no_study_is_named(options, checked, monkeypatch):
    called = []
    monkeypatch.setattr(version_gate, "check_versions", lambda accept: called.append("versions") or 1)
    monkeypatch.setattr("multilab.experiments.gate.recompute_study", lambda study, *_: called.append(study.name) or 0)
    assert main(["gate", *options]) == int(checked)
    assert called == [*(["versions"] if checked else []), "quick"]
