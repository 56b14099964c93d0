import json
import sys
from pathlib import Path

results = [json.loads(path.read_text()) for path in sorted(Path(sys.argv[1]).glob("*.json"))]
if not results:
    sys.exit("no results")
best = max(results, key=lambda result: result["r2"])
print("%(r2).3f with alpha %(alpha)g" % best)
