"""Read all shards at the same time, then fit the normaliser."""
import asyncio
import json
import random
from pathlib import Path

FOLDER = Path("shards")


def write_shards():
    random.seed(0)
    FOLDER.mkdir()
    for i in range(6):
        rows = [[random.random() for _ in range(4)] for _ in range(50)]
        (FOLDER / f"part-{i}.json").write_text(json.dumps(rows))
    (FOLDER / "part-4.json").write_text("")  # the writer was killed before the first flush


async def read(path):
    await asyncio.sleep(0.01)
    rows = json.loads(path.read_text())
    print("read", path, len(rows), "rows")
    return rows


async def read_all(paths):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(path), name=path.name) for path in paths]
    return [row for task in tasks for row in task.result()]


def main():
    write_shards()
    rows = asyncio.run(read_all(sorted(FOLDER.glob("*.json"))))
    print("means", [sum(column) / len(rows) for column in zip(*rows)])


if __name__ == "__main__":
    main()
