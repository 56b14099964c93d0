width = 32
batch_size = 24  # rows of a step
