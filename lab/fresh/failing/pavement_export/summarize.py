import sys

import pandas as pd


def by_road(frame):
    frame = frame.assign(error=(frame.predicted - frame.iri).abs())
    return frame.groupby("road").agg(segments=("error", "size"), mae=("error", "mean"),
                                     worst=("error", "max")).sort_values("mae", ascending=False)


def by_age(frame):
    bins = pd.cut(frame.age, [0, 5, 10, 20, 100])
    return (frame.predicted - frame.iri).abs().groupby(bins, observed=True).mean().to_frame("mae")


def main(source, target):
    frame = pd.read_csv(source)
    with pd.ExcelWriter(target) as book:
        by_road(frame).to_excel(book, sheet_name="roads")
        by_age(frame).reset_index().astype({"age": str}).to_excel(book, sheet_name="age")
    print("written", target)


if __name__ == "__main__":
    main(*sys.argv[1:3])
