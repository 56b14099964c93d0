import random
import sys

random.seed(1)
print("stdout encoding:", sys.stdout.encoding, file=sys.stderr)
PAIRS = [("good morning", "guten Morgen"), ("thank you", "danke"), ("it is beautiful", "es ist sch\u00f6n"), ("yes", "ja")]


class Memory:
    """The smallest translation model there is."""

    def __init__(self):
        self.table = {}

    def fit(self, pairs):
        for source, target in pairs:
            self.table[source] = target

    def translate(self, source):
        return self.table.get(source, "<unk>")


model = Memory()
for epoch in range(3):
    random.shuffle(PAIRS)
    model.fit(PAIRS)
    print("epoch", epoch, "pairs", len(model.table))
print("samples:")
for source in sorted(model.table):
    print("  ", source, "->", model.translate(source))
