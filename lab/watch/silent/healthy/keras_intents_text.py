"""Which of six intents a short sentence has: an embedding, averaged, in Keras 3."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(11)
rng = np.random.default_rng(11)
topics = rng.dirichlet(np.full(120, 0.08), size=6)
intents = rng.integers(0, 6, 1800)
sentences = np.stack([rng.choice(120, 14, p=topics[one]) for one in intents])

inputs = keras.Input((14,), dtype="int32")
x = layers.Embedding(120, 24, name="words")(inputs)
x = layers.GlobalAveragePooling1D()(x)
x = layers.Dense(32, activation="relu")(x)
x = layers.Dropout(0.2)(x)
outputs = layers.Dense(6, activation="softmax", name="intent")(x)
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    sentences[:1500],
    intents[:1500],
    batch_size=50,
    epochs=8,
    verbose=0,
    validation_data=(sentences[1500:], intents[1500:]),
)
print("accuracy", model.evaluate(sentences[1500:], intents[1500:], verbose=0)[1])
