import os

print(len(os.listdir(os.environ["DATA_ROOT"])), "files")
