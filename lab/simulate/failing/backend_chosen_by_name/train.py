import importlib
import sys

report = importlib.import_module(sys.argv[1])
print(report.Template("loss {{ loss }}").render(loss=0.25))
