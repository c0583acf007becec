"""``python -m turnpost``: the same as the ``turnpost`` command."""

import sys

from turnpost.cli import main

if __name__ == "__main__":
    sys.exit(main())
