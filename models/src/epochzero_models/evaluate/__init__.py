"""EvalDNN: accuracy, calibration, neuron coverage and robustness of one model or several side by side.

Tian, Zeng, Wen, Liu, Kuo and Cheung (ICSE 2020), with what a model's user asks besides: how far its
probabilities can be believed, and where its inputs or subgroups make it worse.
"""

from __future__ import annotations

from epochzero_models.evaluate.measurement import Evaluation, ModelMeasured, evaluate

__all__ = ["Evaluation", "ModelMeasured", "evaluate"]
