import json
import statistics
import sys

results = []
for path in sys.argv[1:]:
    with open(path) as file:
        results.append(json.load(file))
errors = [result["error"] for result in results]
print(f"{len(errors)} folds, error {statistics.mean(errors):.3f} +- {statistics.pstdev(errors):.3f}")
