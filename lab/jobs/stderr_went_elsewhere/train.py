import random

vocabulary = {word: i for i, word in enumerate("the loss of a model is small".split())}
text = "the model of the loss is small and a model is the model".split()
random.seed(0)
for epoch in range(3):
    sample = random.sample(text[:7], 4)
    ids = [vocabulary[word] for word in sample]
    print(f"epoch {epoch}: {ids}")
print("encoding the whole text")
print([vocabulary[word] for word in text])
