import os
import sys

os.makedirs(sys.argv[1], exist_ok=True)
for epoch in range(3):
    print(f"epoch {epoch + 1}/3", flush=True)
    with open(os.path.join(sys.argv[1], f"metrics-{epoch}.txt"), "w") as file:
        file.write(f"loss {1 / (epoch + 1):.3f}\n")
