import os

experiment = os.environ.get("EXPERIMENT_NAME")
print("run", experiment.lower())
