"""Print the lowest versions that pyproject.toml allows, one requirement a line: what ``make test-lowest`` installs."""

import re
import sys
import tomllib
from pathlib import Path

BESIDE = ("click==8.2.1",)  # the first whose test runner keeps standard error apart


def lowest(dependencies: list[str]) -> list[str]:
    """Return the requirements with their lower bounds pinned."""
    bounds = (re.match(r"([\w.-]+)(?:\[[^]]*])?>=([\w.]+)", each) for each in dependencies)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    sys.stdout.write("\n".join([*lowest(project["dependencies"]), *BESIDE]) + "\n")
