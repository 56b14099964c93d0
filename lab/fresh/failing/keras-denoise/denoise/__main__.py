import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

from denoise.cli import main

sys.exit(main())
