"""`python -m proofs_checks`: the report of every check."""

import sys

from proofs_checks.engine.report import main

if __name__ == "__main__":
    sys.exit(main())
