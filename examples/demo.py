"""The main job on the bundled example: predict the rents of 700 districts, then compare with the truth.

    python examples/demo.py [FOLDER]

leaves predictions.csv and report.html in FOLDER (default: demo).
"""

import sys
from pathlib import Path

import pandas as pd
from sklearn.metrics import r2_score

import graphmrf as gm
from graphmrf.cli import app
from graphmrf.metrics import coverage


def main(folder: Path) -> None:
    """Run `graphmrf predict` as a user would, then score it on the hidden rents."""
    folder.mkdir(parents=True, exist_ok=True)
    files, predictions, report = gm.datasets.example(), folder / "predictions.csv", folder / "report.html"
    options = ["--target", "rent", "--ignore", "x", "--ignore", "y", "-o", str(predictions), "--report", str(report)]
    code = app(["predict", str(files.nodes), str(files.edges), *options], standalone_mode=False)
    if code:
        sys.exit(code)

    hidden = pd.read_csv(files.hidden).merge(pd.read_csv(predictions), on="district")
    accuracy = r2_score(hidden["rent"], hidden["prediction"])
    inside = coverage(hidden["rent"], hidden["lower"], hidden["upper"])
    print(f"\nTruth, from the {len(hidden)} rents that were hidden: R² {accuracy:.3f}; ", end="")
    print(f"{100 * inside:.1f} % of them lie inside their 90 % interval")
    print(f"Open {report} in a browser; the table is {predictions}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
