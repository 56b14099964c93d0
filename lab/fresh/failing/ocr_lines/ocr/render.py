"""Text lines drawn on the fly."""

import random
import string

import cv2
import numpy as np
import torch
from torch.utils.data import IterableDataset

ALPHABET = string.ascii_lowercase + string.digits


def draw(text, height=32, width=256):
    canvas = np.full((height, width), 255, np.uint8)
    cv2.putText(canvas, text, (4, 23), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 0, 2, cv2.LINE_AA)
    noise = np.random.normal(0, 12, canvas.shape)
    return np.clip(canvas + noise, 0, 255).astype(np.uint8)


class LineDataset(IterableDataset):
    def __init__(self, length=8):
        self.length = length

    def __iter__(self):
        while True:
            text = "".join(random.choices(ALPHABET, k=self.length))
            image = torch.from_numpy(draw(text)).float().div(255).unsqueeze(0)
            yield image, torch.tensor([ALPHABET.index(letter) + 1 for letter in text])
