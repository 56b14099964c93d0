import random


def train(epochs):
    weight = 0.0
    for epoch in range(epochs):
        error = random.gauss(1.0, 0.1) - weight
        weight += 0.5 * error
	print("epoch", epoch, "weight", weight)
    return weight


if __name__ == "__main__":
    train(10)
