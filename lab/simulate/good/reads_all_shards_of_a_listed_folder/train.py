import sys
from pathlib import Path

for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path.name, len(path.read_text()), flush=True)
