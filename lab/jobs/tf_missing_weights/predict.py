import argparse

import numpy as np
import keras


def build_model(classes):
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(classes, name="head"),
    ])


parser = argparse.ArgumentParser()
parser.add_argument("--weights", default="checkpoints/best.weights.h5")
parser.add_argument("--classes", type=int, default=10)
args = parser.parse_args()

model = build_model(args.classes)
print("loading", args.weights, flush=True)
model.load_weights(args.weights)
images = np.zeros((4, 28, 28, 1), "float32")
for i, scores in enumerate(model.predict(images, verbose=0)):
    print(i, scores.argmax())
