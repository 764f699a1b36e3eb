"""``python -m graphmrf`` is the command ``graphmrf``."""

from graphmrf.cli import main

if __name__ == "__main__":
    main()
