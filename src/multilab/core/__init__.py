"""Shared base of all packages: errors, digests, atomic files, and paths of settings and data."""

from multilab.core.digests import array_digest, canonical_json, json_digest
from multilab.core.errors import MultilabError
from multilab.core.external_code import OutsideCode, OutsideCodeError, outside_code
from multilab.core.files import (
    changed_files,
    parse_json,
    read_content,
    read_json,
    read_sealed,
    record_checksums,
    write_atomically,
    write_content,
    write_sealed,
)
from multilab.core.paths import conf_dir, data_dir, experiment_dir, home_dir, report_dir, results_dir, store_dir
from multilab.core.versions import declared_versions, files_digest, formulas_digest, major_minor

__all__ = [
    "MultilabError",
    "OutsideCode",
    "OutsideCodeError",
    "array_digest",
    "canonical_json",
    "changed_files",
    "conf_dir",
    "data_dir",
    "declared_versions",
    "experiment_dir",
    "files_digest",
    "formulas_digest",
    "home_dir",
    "json_digest",
    "major_minor",
    "outside_code",
    "parse_json",
    "read_content",
    "read_json",
    "read_sealed",
    "record_checksums",
    "report_dir",
    "results_dir",
    "store_dir",
    "write_atomically",
    "write_content",
    "write_sealed",
]
