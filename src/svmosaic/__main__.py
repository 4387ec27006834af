"""`python -m svmosaic` is the command `svmosaic`."""

import sys

from svmosaic.cli import main

if __name__ == "__main__":
    sys.exit(main())
