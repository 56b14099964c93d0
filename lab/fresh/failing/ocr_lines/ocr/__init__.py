from ocr.render import LineDataset
from ocr.net import LineNet

__all__ = ["LineDataset", "LineNet"]
