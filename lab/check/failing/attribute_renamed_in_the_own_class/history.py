class History:
    """The losses of a run."""

    def __init__(self, window=50):
        self.window = window
        self.losses = []

    def add(self, loss):
        self.losses.append(loss)

    def smooth(self):
        recent = self.losses[-self.window :]
        return sum(recent) / max(len(recent), 1)

    def best(self):
        return min(self.losses)
