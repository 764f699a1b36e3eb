"""What checks the repository: its shape, its links, its tests, and what it does with bad input and interruptions.

The cases that they try are those of the tests.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
