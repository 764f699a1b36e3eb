"""Print what pip would install, each with its version and the SHA-256 of its file: what ``make lock`` keeps.

The argument is a report of ``pip install --dry-run --report``. The project itself, which has no such file, is left out.
"""

import json
import platform
import sys
from pathlib import Path
from typing import Any


def locked(report: dict[str, Any]) -> list[str]:
    """Return one requirement a line, sorted by name.

    Examples
    --------
    >>> file = {"archive_info": {"hashes": {"sha256": "0"}}}
    >>> locked({"install": [{"metadata": {"name": "A", "version": "1"}, "download_info": file}]})
    ['a==1 --hash=sha256:0']
    """
    made = []
    for each in report["install"]:
        name, version = each["metadata"]["name"].lower(), each["metadata"]["version"]
        hashes = each["download_info"].get("archive_info", {}).get("hashes", {})
        if hashes:
            made.append(f"{name}=={version} --hash=sha256:{hashes['sha256']}")
    return sorted(made)


if __name__ == "__main__":
    where = f"# {sys.implementation.name} {platform.python_version()}, {sys.platform} {platform.machine()}; make lock"
    sys.stdout.write("\n".join([where, *locked(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))]) + "\n")
