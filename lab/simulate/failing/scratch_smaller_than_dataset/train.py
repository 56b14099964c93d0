import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "unpacked.bin"), "wb") as file:
        for part in range(6):
            file.write(os.urandom(1 << 20))
            file.flush()
            print(f"unpacked part {part + 1}/6", flush=True)
