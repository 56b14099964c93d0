import os
import sys

block = os.urandom(1 << 20)
os.makedirs(sys.argv[1], exist_ok=True)
for epoch in range(8):
    with open(os.path.join(sys.argv[1], f"weights-{epoch}.bin"), "wb") as file:
        file.write(block)
    print(f"saved epoch {epoch + 1}/8", flush=True)
