"""What every room stands on: the root of all errors, digests, and where the settings are."""

from multilab.ground.digests import array_digest, canonical_json, code_digest, json_digest
from multilab.ground.errors import MultilabError
from multilab.ground.files import write_atomically
from multilab.ground.outside import OutsideCodeError, outside_code
from multilab.ground.places import conf_dir, data_dir

__all__ = [
    "MultilabError",
    "OutsideCodeError",
    "array_digest",
    "canonical_json",
    "code_digest",
    "conf_dir",
    "data_dir",
    "json_digest",
    "outside_code",
    "write_atomically",
]
