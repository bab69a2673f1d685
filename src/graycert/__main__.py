"""`python -m graycert`."""

import sys

from graycert.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
