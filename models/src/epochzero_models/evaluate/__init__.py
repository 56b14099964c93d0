"""EvalDNN: accuracy, calibration, neuron coverage and robustness of one or several models.

Tian, Zeng, Wen, Liu, Kuo and Cheung (ICSE 2020), extended by calibration, corruptions and subgroups.
"""

from __future__ import annotations

from epochzero_models.evaluate.measurement import Evaluation, ModelMeasured, evaluate

__all__ = ["Evaluation", "ModelMeasured", "evaluate"]
