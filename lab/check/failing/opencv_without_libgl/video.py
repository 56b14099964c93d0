"""Frames as arrays."""

import cv2


def read_frame(path, size):
    """The frame in RGB, cut to a square in the middle."""
    frame = cv2.imread(path)
    if frame is None:
        raise ValueError(f"cannot read {path}")
    height, width = frame.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = frame[top : top + side, left : left + side]
    return cv2.cvtColor(cv2.resize(square, (size, size)), cv2.COLOR_BGR2RGB)
