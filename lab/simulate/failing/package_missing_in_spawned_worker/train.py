import multiprocessing


def feature(value):
    import sympy

    return int(sympy.nextprime(value))


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(feature, [10, 20]))
