"""Parse sensor logs in parallel and fit a line to every sensor."""
from multiprocessing import Pool

LINES = [f"sensor{i % 7}\t{i}\t{i * 0.5:.1f}" for i in range(2000)]
LINES[1337] = "sensor0\t1337"


def parse(line):
    fields = line.split("\t")
    return fields[0], float(fields[1]), float(fields[2])


def slope(points):
    mean_t = sum(t for t, _ in points) / len(points)
    mean_v = sum(v for _, v in points) / len(points)
    covariance = sum((t - mean_t) * (v - mean_v) for t, v in points)
    return covariance / sum((t - mean_t) ** 2 for t, _ in points)


def main():
    print("parsing", len(LINES), "lines with 2 processes")
    with Pool(2) as pool:
        rows = pool.map(parse, LINES, chunksize=100)
    sensors = {}
    for name, t, v in rows:
        sensors.setdefault(name, []).append((t, v))
    for name, points in sorted(sensors.items()):
        print(name, slope(points))


if __name__ == "__main__":
    main()
