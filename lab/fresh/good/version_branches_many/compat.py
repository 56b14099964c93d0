"""One code for the versions of the laptop (2021) and of the cluster."""
import inspect

import numpy as np
import pandas as pd
import sklearn
import torch
from sklearn import metrics
from sklearn.preprocessing import OneHotEncoder

TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])

trapezoid = np.trapezoid if hasattr(np, "trapezoid") else np.trapz

if int(np.__version__.split(".")[0]) < 2:
    FLOATS = (np.float_, np.float32)
else:
    FLOATS = (np.float64, np.float32)

try:
    from torch.amp import autocast
except ImportError:
    from torch.cuda.amp import autocast


def encoder():
    if SKLEARN >= (1, 2):
        return OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    return OneHotEncoder(sparse=False, handle_unknown="ignore")


def rmse(truth, guess):
    if hasattr(metrics, "root_mean_squared_error"):
        return metrics.root_mean_squared_error(truth, guess)
    return metrics.mean_squared_error(truth, guess, squared=False)


def append(frame, row):
    try:
        return frame.append(row, ignore_index=True)
    except AttributeError:
        return pd.concat([frame, pd.DataFrame([row])], ignore_index=True)


def elementwise(frame, function):
    return getattr(frame, "map", None)(function) if hasattr(frame, "map") else frame.applymap(function)


def load(path):
    extra = {"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {}
    return torch.load(path, map_location="cpu", **extra)


def plateau(optimizer):
    options = {"patience": 5, "factor": 0.5}
    if TORCH < (2, 2):
        options["verbose"] = True
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
