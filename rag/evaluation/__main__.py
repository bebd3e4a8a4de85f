"""``python -m rag.evaluation``."""

import sys

from rag.evaluation.command import main

if __name__ == "__main__":
    sys.exit(main())
