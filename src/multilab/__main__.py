"""``python -m multilab``: the command line."""

import sys

from multilab.cli import main

sys.exit(main())
