import os

root = os.environ["DATA_ROOT"]
print(sorted(os.listdir(root)))
