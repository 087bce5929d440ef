"""Validates configurations against a JSON schema.

Reads {"schema": …, "configurations": {name: TOML, …}} from standard input, and writes the problems of each name.
"""

import datetime
import json
import sys
import tomllib

from jsonschema import Draft7Validator


def plain(value):
    """TOML as JSON; an editor sees a moment as its text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return value


given = json.load(sys.stdin)
Draft7Validator.check_schema(given["schema"])
validator = Draft7Validator(given["schema"])
found = {
    name: [f"{error.json_path}: {error.message}" for error in validator.iter_errors(plain(tomllib.loads(text)))]
    for name, text in given["configurations"].items()
}
json.dump(found, sys.stdout)
