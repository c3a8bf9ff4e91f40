#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""validate.py SCHEMA (valid|invalid):FILE...: fails where a file is not what is said of it."""

import json
import sys

from jsonschema import Draft202012Validator


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    wrong = 0
    for argument in sys.argv[2:]:
        verdict, path = argument.split(":", 1)
        with open(path, encoding="utf-8") as file:
            problem = next(validator.iter_errors(json.load(file)), None)
        if (problem is None) != (verdict == "valid"):
            print(f"{path}: {problem.message if problem else 'accepted'}, but it is {verdict}")
            wrong += 1
    return 1 if wrong else 0


sys.exit(main())
