"""Copies what was trained to where the service looks for it."""
import datetime
import json
import os
import shutil


def version():
    return datetime.datetime.now().strftime("%Y%m%d-%H%M%S")


def publish(weights, **metrics):
    base = os.getenv("MODEL_REGISTRY", "/tmp/registry")
    folder = os.path.join(base, os.environ["MODEL_NAME"], version())
    os.makedirs(folder)
    shutil.copy2(weights, folder)
    with open(os.path.join(folder, "metrics.json"), "w") as f:
        json.dump(metrics, f)
    print("published", folder)
