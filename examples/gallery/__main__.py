"""Draw the pictures of the gallery: ``python examples/gallery [NAME ...]``, into docs/images/gallery."""

import runpy
import sys
import time
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from PIL import Image

HERE = Path(__file__).parent
PICTURES = HERE.parents[1] / "docs" / "images" / "gallery"


def main(names: list[str]) -> None:
    """Run the examples named, or all of them, and save their figures."""
    mpl.use("Agg")
    for script in sorted(HERE.glob("[a-z]*.py")):
        if names and script.stem not in names:
            continue
        start = time.process_time()
        figure = runpy.run_path(str(script))["figure"]
        picture = PICTURES / f"{script.stem}.png"
        figure.savefig(picture, dpi=72, bbox_inches="tight")
        with Image.open(picture) as drawn:  # 64 colours: a third of the bytes
            drawn.convert("RGB").quantize(64).save(picture, optimize=True)
        plt.close("all")
        print(f"{script.stem}: {time.process_time() - start:.1f} s of CPU time")


if __name__ == "__main__":
    main(sys.argv[1:])
