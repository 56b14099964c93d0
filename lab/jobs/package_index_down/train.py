import numpy as np
from tinyaugment import flip

images = np.arange(24).reshape(2, 3, 4)
flipped = np.array([flip(image.tolist()) for image in images])
print("flipped", flipped.shape, flipped[0, 0].tolist())
